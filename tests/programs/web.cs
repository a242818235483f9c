// A small real web server (Kestrel): GET / answers "hi". Says on standard output where it listens.
//   web.dll [URL]      by default a free port of 127.0.0.1
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Hosting;

public static class Web {
  public static void Main(string[] args) {
    string url = args.Length > 0 ? args[0] : "http://127.0.0.1:0";
    Lifeline.Hold();
    Host.CreateDefaultBuilder(new string[0])
        .ConfigureWebHostDefaults(web => web.UseUrls(url).Configure(app => app.Run(new RequestDelegate(context => context.Response.WriteAsync("hi")))))
        .Build()
        .Run();
  }
}
