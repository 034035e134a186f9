/* Holds a pod's namespaces open: waits, collects orphans, and ends at once when asked to. Also the container of every
 * Linux pod in the stories. The kernel ignores signals that process 1 has no handler for, hence the handler. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop(int signal) { (void)signal; _exit(0); }
static void collect(int signal) { (void)signal; while (waitpid(-1, 0, WNOHANG) > 0) {} }

int main(void) {
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    signal(SIGCHLD, collect);
    for (;;) pause();
}
