/* Starts the command line in the second argument, sends it Ctrl-Break after the seconds in the first, and exits with its exit code. Without
   arguments, waits for Ctrl-Break, and then exits with 7. */
#include <stdlib.h>
#include <windows.h>

static HANDLE pressed;

static BOOL WINAPI handle(DWORD event) { return event == CTRL_BREAK_EVENT && SetEvent(pressed); }

static int await(void) {
    pressed = CreateEvent(NULL, TRUE, FALSE, NULL);
    SetConsoleCtrlHandler(handle, TRUE);
    return WaitForSingleObject(pressed, 20000) == WAIT_OBJECT_0 ? 7 : 1;
}

int main(int count, char **arguments) {
    STARTUPINFOA startup = {sizeof startup};
    PROCESS_INFORMATION started;
    DWORD code;
    if (count == 1)
        return await();
    if (count != 3 || !CreateProcessA(NULL, arguments[2], NULL, NULL, TRUE, CREATE_NEW_PROCESS_GROUP, NULL, NULL, &startup, &started))
        return 1;
    Sleep(1000 * atoi(arguments[1]));
    if (!GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, started.dwProcessId))
        return 1;
    if (WaitForSingleObject(started.hProcess, 60000) != WAIT_OBJECT_0 || !GetExitCodeProcess(started.hProcess, &code))
        return 1;
    return code;
}
