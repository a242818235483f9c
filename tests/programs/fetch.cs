// Sends HTTP requests, one after the other. Reads one command per line from standard input; prints "done" and the command when it is complete.
//   get N URL        N requests; before "done", prints "status" and the status of the last one, or "failed" and the exception type
using System;
using System.Net.Http;

public static class Fetch {
  public static void Main() {
    var client = new HttpClient();
    Console.WriteLine("ready");
    for (string line; (line = Console.ReadLine()) != null;) {
      string[] words = line.Split(' ');
      string said = "";
      for (int i = 0; i < int.Parse(words[1]); i++) {
        try {
          using (var response = client.GetAsync(words[2]).Result) said = "status " + (int)response.StatusCode;
        } catch (AggregateException failed) { said = "failed " + failed.InnerException.GetType().Name; }
      }
      Console.WriteLine(said);
      Console.WriteLine("done " + line);
    }
  }
}
