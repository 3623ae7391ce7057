/*
 * Calls of posttrade.h that signals interrupt: each prints what it would without them.
 *
 *   interrupted <socket> <token> <another token>
 *
 * Before each call of the system that may be interrupted, one fails with EINTR: no signal can be
 * timed as exactly. The wait for a record meets real signals.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

static int calls, interrupted;

/* interrupt says that this call fails: every first one of two. */
static int interrupt(void) {
  if (calls++ % 2 == 1) return 0;
  interrupted++;
  errno = EINTR;
  return 1;
}

#define connect(s, to, n) (interrupt() ? -1 : connect(s, to, n))
#define send(s, frame, n, flags) (interrupt() ? -1 : send(s, frame, n, flags))
#define recv(s, frame, n, flags) (interrupt() ? -1 : recv(s, frame, n, flags))
#define recvmsg(s, message, flags) (interrupt() ? -1 : recvmsg(s, message, flags))

#include "../c/posttrade.h"

static void nothing(int number) { (void)number; }

int main(int argc, char **argv) {
  struct pt_session s;
  struct pt_record a;
  uint32_t first = 0, second = 0;
  if (argc != 4) return 2;
  printf("open %d\n", pt_open(&s, argv[1], PT_ORDERS, argv[2]));
  if (s.socket < 0) return 1;
  int found = pt_security(&s, "AAA", &first);
  printf("AAA %d %u\n", found, first);
  found = pt_security(&s, "BBB", &second);
  printf("BBB %d %u\n", found, second);
  printf("renew %d\n", pt_renew(&s, argv[3]));
  printf("interrupted %d of %d\n", interrupted, calls);

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = nothing;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval each = {{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &each, NULL);
  const int64_t most = 200000000;
  int64_t began = pt_clock();
  int received = pt_receive(&s, &a, most);
  printf("receive %s, %s\n", received == -ETIMEDOUT ? "timed out" : "did not time out",
         pt_clock() - began >= most ? "after its time" : "too early");
  printf("at once %s\n", pt_receive(&s, &a, 0) == -ETIMEDOUT ? "timed out" : "did not time out");
  pt_close(&s);
  return 0;
}
