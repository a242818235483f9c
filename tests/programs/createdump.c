// Stands in for the dump program of .NET for Windows, which no package has. The runtime (10.0.9) starts it beside the program, with
// `--name FILE --normal|--withheap|--triage|--full`, to dump the process that started it. Windows writes the dump.
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <dbghelp.h>
#include <tlhelp32.h>

static DWORD parent(void) {
  PROCESSENTRY32 entry = {.dwSize = sizeof entry};
  HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
  for (BOOL more = Process32First(list, &entry); more; more = Process32Next(list, &entry))
    if (entry.th32ProcessID == GetCurrentProcessId()) return entry.th32ParentProcessID;
  return 0;
}

int main(int count, char **words) {
  const char *path = NULL;
  MINIDUMP_TYPE kind = MiniDumpNormal;
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--name") == 0 && i + 1 < count) path = words[++i];
    else if (strcmp(words[i], "--withheap") == 0) kind = MiniDumpWithPrivateReadWriteMemory;
    else if (strcmp(words[i], "--full") == 0) kind = MiniDumpWithFullMemory;
  }
  if (path == NULL) return 1;
  DWORD pid = parent();
  HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid);
  HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
  if (process == NULL || file == INVALID_HANDLE_VALUE) return 2;
  return MiniDumpWriteDump(process, pid, file, kind, NULL, NULL, NULL) ? 0 : 3;
}
