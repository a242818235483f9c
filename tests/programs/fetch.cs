// Sends HTTP requests, one after the other. Reads one command per line from standard input; prints "done" and the command when it is complete.
//   start N MS URL   starts N requests, MS milliseconds apart; does not wait for them
//   get N URL        N requests; before "done", prints "status" and the status of the last one, or "failed" and the exception type
using System;
using System.Net.Http;
using System.Threading;

public static class Fetch {
  public static void Main() {
    var client = new HttpClient();
    Console.WriteLine("ready");
    for (string line; (line = Console.ReadLine()) != null;) {
      string[] words = line.Split(' ');
      string said = "";
      if (words[0] == "start") {
        for (int i = 0; i < int.Parse(words[1]); i++) {
          client.GetAsync(words[3]);
          Thread.Sleep(int.Parse(words[2]));
        }
        Console.WriteLine("done " + line);
        continue;
      }
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
