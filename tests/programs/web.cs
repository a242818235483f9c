// A small real web server (Kestrel). Prints its address on standard output.
//   web.dll [URL]      by default a free port of 127.0.0.1
// GET /status/N answers with status N, GET /slow/MS answers after MS milliseconds, GET /throw throws, GET /log/MS writes log messages for MS
// milliseconds, GET /orders/N is an endpoint with the route /orders/{id}, which answers with status 404 if N is 0; everything else answers "hi".
using System;
using System.Diagnostics;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

public static class Web {
  static async Task Slow(HttpContext context, int milliseconds) {
    await Task.Delay(milliseconds);
    await context.Response.WriteAsync("hi");
  }

  static void WriteLog(HttpContext context, int milliseconds) {
    var logger = ((ILoggerFactory)context.RequestServices.GetService(typeof(ILoggerFactory))).CreateLogger("Orders");
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) logger.LogWarning("Order {Number} was not found", watch.ElapsedTicks);
  }

  static Task Answer(HttpContext context) {
    string path = context.Request.Path.Value;
    if (path == "/throw") throw new InvalidOperationException("as it was asked to");
    if (path.StartsWith("/slow/")) return Slow(context, int.Parse(path.Substring(6)));
    if (path.StartsWith("/log/")) WriteLog(context, int.Parse(path.Substring(5)));
    if (path.StartsWith("/status/")) context.Response.StatusCode = int.Parse(path.Substring(8));
    return path.StartsWith("/status/") ? Task.CompletedTask : context.Response.WriteAsync("hi");
  }

  static Task Order(HttpContext context) {
    if ((string)context.Request.RouteValues["id"] == "0") context.Response.StatusCode = 404;
    return Task.CompletedTask;
  }

  static void Configure(IApplicationBuilder app) {
    app.UseRouting();
    app.UseEndpoints(endpoints => endpoints.MapGet("/orders/{id}", Order));
    app.Run(new RequestDelegate(Answer));
  }

  public static void Main(string[] args) {
    string url = args.Length > 0 ? args[0] : "http://127.0.0.1:0";
    Lifeline.Hold();
    Host.CreateDefaultBuilder(new string[0])
        .ConfigureWebHostDefaults(web => web.UseUrls(url).Configure(Configure))
        .Build()
        .Run();
  }
}
