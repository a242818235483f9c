// Reports database commands as client libraries do, without a database. Reads one command per line from standard input; prints "done" and the command
// when it is complete.
//   sql N MS TEXT    N commands of TEXT, one after the other, as reported by Microsoft.Data.SqlClient; each takes at least MS milliseconds
//   ef N MS TEXT     the same, as reported by Entity Framework Core
using System;
using System.Diagnostics;
using System.Threading;

public class Connection {
  public string Database { get { return "shop"; } }
  public string DataSource { get { return "tcp:db.example,1433"; } }
  public string ServerVersion { get { return "16.0"; } }
  public string ConnectionString { get { return "Server=db.example;Database=shop"; } }
}

public class Command {
  public string CommandText { get; set; }
  public string CommandType { get { return "Text"; } }
  public int CommandTimeout { get { return 30; } }
  public Connection Connection { get { return new Connection(); } }
}

public class Telling {
  public Guid ConnectionId { get; set; }
  public Command Command { get; set; }
}

public static class Store {
  static void Go(DiagnosticListener listener, string before, string after, int count, int milliseconds, string text) {
    for (int i = 0; i < count; i++) {
      var telling = new Telling { ConnectionId = Guid.NewGuid(), Command = new Command { CommandText = text } };
      if (listener.IsEnabled(before)) listener.Write(before, telling);
      Thread.Sleep(milliseconds);
      if (listener.IsEnabled(after)) listener.Write(after, telling);
    }
  }

  public static void Main() {
    var sql = new DiagnosticListener("SqlClientDiagnosticListener");
    var ef = new DiagnosticListener("Microsoft.EntityFrameworkCore");
    for (string line; (line = Console.ReadLine()) != null;) {
      string[] words = line.Split(new[] { ' ' }, 4);
      int count = int.Parse(words[1]), milliseconds = int.Parse(words[2]);
      const string Sql = "Microsoft.Data.SqlClient.WriteCommand", Ef = "Microsoft.EntityFrameworkCore.Database.Command.Command";
      switch (words[0]) {
        case "sql": Go(sql, Sql + "Before", Sql + "After", count, milliseconds, words[3]); break;
        case "ef": Go(ef, Ef + "Executing", Ef + "Executed", count, milliseconds, words[3]); break;
        default: throw new ArgumentException(line);
      }
      Console.WriteLine("done " + line);
    }
  }
}
