/* Writes to the file given as argument whether the console on standard output accepts the mode for escape sequences, and whether one moves the
   cursor, as text does. */
#include <stdio.h>
#include <windows.h>

int main(int count, char **arguments) {
    HANDLE console = GetStdHandle(STD_OUTPUT_HANDLE);
    CONSOLE_SCREEN_BUFFER_INFO before, after;
    DWORD mode, written;
    FILE *report = count == 2 ? fopen(arguments[1], "w") : NULL;
    if (!report || !GetConsoleMode(console, &mode))
        return 1;
    BOOL is_set = SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    if (!GetConsoleScreenBufferInfo(console, &before) || !WriteConsoleW(console, L"\x1b[m", 3, &written, NULL) ||
        !GetConsoleScreenBufferInfo(console, &after))
        return 1;
    fprintf(report, "setting %s, cursor moved %d columns\n", is_set ? "accepted" : "refused", after.dwCursorPosition.X - before.dwCursorPosition.X);
    return fclose(report);
}
