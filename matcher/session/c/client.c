/*
 * An example of posttrade.h: it sends one resting order by its ticker and one cancel of it, and
 * prints both answers; or it prints the best levels of all securities.
 *
 *   cc -std=gnu11 -O2 -o client client.c
 *   client <socket> <account> <ticker> [token]
 *   client <socket> market [token]
 */
#include "posttrade.h"

#include <stdio.h>
#include <stdlib.h>

static struct pt_session session;

/* must ends the program when a call has not succeeded. */
static void must(const char *what, int result) {
  if (result == PT_OK) return;
  if (result < 0)
    fprintf(stderr, "%s: %s\n", what, strerror(-result));
  else
    fprintf(stderr, "refused: status %d\n", result);
  exit(result < 0 ? 1 : 2);
}

/* ask hands in a command and prints its answer. */
static struct pt_record ask(struct pt_request r) {
  struct pt_record a;
  while (!pt_submit(&session, &r)) {
  }
  must("receive", pt_receive(&session, &a, INT64_MAX));
  printf("correlation=%llu code=%s status=%s reason=%s sequence=%llu order=%u qty=%d leaves=%d\n",
         (unsigned long long)a.correlation, pt_code_name(a.code), pt_status_name(a.status), pt_reason_name(a.reason),
         (unsigned long long)a.sequence, a.order, a.qty, a.leaves);
  return a;
}

/* watch prints the best levels that a market data session begins with. */
static int watch(void) {
  for (;;) {
    struct pt_record r;
    must("receive", pt_receive(&session, &r, INT64_MAX));
    if (r.kind != PT_TOP) continue;
    if (r.security == 0) return 0;
    struct pt_top top = pt_best(&r);
    printf("security=%u bid=%lldx%lld ask=%lldx%lld\n", r.security, (long long)top.bid_qty, (long long)top.bid,
           (long long)top.ask_qty, (long long)top.ask);
  }
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[2], "market") == 0) {
    must("open", pt_open(&session, argv[1], PT_MARKET, argc > 3 ? argv[3] : ""));
    return watch();
  }
  if (argc < 4) {
    fprintf(stderr, "usage: client <socket> <account> <ticker> [token]\n");
    return 1;
  }
  must("open", pt_open(&session, argv[1], PT_ORDERS, argc > 4 ? argv[4] : ""));
  uint32_t account = (uint32_t)atoi(argv[2]), security;
  must("look up", pt_security(&session, argv[3], &security));
  if (security == 0) {
    fprintf(stderr, "no security %s\n", argv[3]);
    return 1;
  }
  struct pt_request order = pt_order(1, account, security, PT_BUY, 5, 99 * PT_UNIT);
  strcpy(order.client_id, "from-c");
  struct pt_record answer = ask(order);
  if (answer.code != PT_DECIDED || answer.status == PT_REJECTED) return 3;
  ask(pt_cancel(2, account, answer.order));
  if (argc > 4) must("renew", pt_renew(&session, argv[4]));
  pt_close(&session);
  return 0;
}
