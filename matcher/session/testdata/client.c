// The smallest client of a session, in C: it says hello, sends one resting order and one
// cancel of it, and prints both answers; or it prints the best levels of all securities.
// The layout is that of the package's doc.go.
//
//   client <socket> <account> <security> [token]
//   client <socket> market [token]
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct head { uint32_t magic; uint16_t version, kind; uint32_t bytes, status; };
struct hello { struct head head; uint32_t role, command_slots, event_slots, zero; char token[4096]; };
struct welcome {
  struct head head;
  uint64_t session, command_bytes, client_page, event_bytes;
  uint32_t command_slots, event_slots, quota, zero[3];
};
struct request {
  uint16_t block, template_id, schema, version;
  uint64_t correlation;
  int64_t time, limit, key;
  uint32_t order, account, security;
  int32_t qty;
  uint32_t epoch;
  uint8_t type, side;
  uint16_t flags;
  char client_id[64];
};
struct record {
  uint8_t kind, code, what, side, status, reason;
  uint16_t flags;
  uint64_t correlation, sequence;
  int64_t time, price, last_price;
  uint64_t trade;
  uint32_t order, account, security;
  int32_t qty, leaves, last_qty;
  uint32_t fills, era;
  uint64_t missed;
  int64_t position, average_cost, limit;
  uint64_t zero2;
};
struct top {  // the record of kind 7: a security's best levels
  uint8_t kind, zero[5];
  uint16_t flags;
  uint64_t zero2, sequence;
  int64_t time, zero3[4];
  uint32_t security, zero4[5];
  int64_t bid, bid_qty, ask, ask_qty;
  uint32_t bid_orders, ask_orders;
};
enum { TOP = 7, SNAPSHOT = 512 };
_Static_assert(sizeof(struct request) == 128, "a slot has 128 bytes");
_Static_assert(sizeof(struct top) == 128, "a record has 128 bytes");
_Static_assert(sizeof(struct record) == 128, "a record has 128 bytes");

static struct welcome welcome;
static char *commands, *events;
static int64_t sent, seen;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static _Atomic int64_t *cursor(char *region, uint64_t at) { return (_Atomic int64_t *)(region + at); }

static void connect_to(const char *path, uint32_t role, const char *token) {
  int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path, path, sizeof to.sun_path - 1);
  if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to) < 0) die("connect");
  static struct hello hello;
  size_t length = sizeof hello - sizeof hello.token + strlen(token);
  hello.head = (struct head){0x31535450, 1, 1, (uint32_t)length, 0};
  hello.role = role;
  memcpy(hello.token, token, strlen(token));
  if (send(s, &hello, length, 0) < 0) die("send");

  char control[CMSG_SPACE(2 * sizeof(int))];
  struct iovec part = {&welcome, sizeof welcome};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(s, &message, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(struct head)) die("recvmsg");
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  if (welcome.head.kind != 2 || welcome.head.status != 0 || rights == NULL) {
    fprintf(stderr, "refused: status %u\n", welcome.head.status);
    exit(2);
  }
  int fds[2];
  memcpy(fds, CMSG_DATA(rights), sizeof fds);
  commands = mmap(NULL, welcome.command_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
  events = mmap(NULL, welcome.event_bytes, PROT_READ, MAP_SHARED, fds[1], 0);
  if (commands == MAP_FAILED || events == MAP_FAILED) die("mmap");
}

static void submit(const struct request *r) {
  while (sent - atomic_load_explicit(cursor(commands, 4224), memory_order_acquire) == welcome.command_slots) {
  }
  memcpy(commands + 8192 + 128 * (sent & (welcome.command_slots - 1)), r, sizeof *r);
  atomic_store_explicit(cursor(commands, 4096), ++sent, memory_order_release);
  atomic_thread_fence(memory_order_seq_cst);
  _Atomic uint32_t *doorbell = (_Atomic uint32_t *)(commands + 4352);
  uint32_t parked = 1;
  if (atomic_load(doorbell) == 1 && atomic_compare_exchange_strong(doorbell, &parked, 0))
    syscall(SYS_futex, doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static struct record receive(void) {
  _Atomic int64_t *published = cursor(events, 4096);
  _Atomic uint32_t *waiter = (_Atomic uint32_t *)(commands + welcome.client_page + 128);
  while (atomic_load_explicit(published, memory_order_acquire) == seen) {
    atomic_store(waiter, 1);
    atomic_thread_fence(memory_order_seq_cst);
    struct timespec most = {0, 50000000};
    if (atomic_load(published) == seen) syscall(SYS_futex, waiter, FUTEX_WAIT, 1, &most, NULL, 0);
    atomic_store(waiter, 0);
  }
  struct record r;
  memcpy(&r, events + 8192 + 128 * (seen & (welcome.event_slots - 1)), sizeof r);
  atomic_store_explicit(cursor(commands, welcome.client_page), ++seen, memory_order_release);
  return r;
}

static struct record ask(struct request r) {
  submit(&r);
  struct record a = receive();
  printf("correlation=%llu code=%u status=%u reason=%u sequence=%llu order=%u qty=%d leaves=%d\n",
         (unsigned long long)a.correlation, a.code, a.status, a.reason, (unsigned long long)a.sequence, a.order, a.qty, a.leaves);
  return a;
}

// watch prints the best levels that a market data session begins with.
static int watch(void) {
  for (;;) {
    struct record r = receive();
    struct top top;
    memcpy(&top, &r, sizeof top);
    if (top.kind != TOP) continue;
    if (top.security == 0) return 0;
    printf("security=%u bid=%lldx%lld ask=%lldx%lld\n", top.security, (long long)top.bid_qty, (long long)top.bid,
           (long long)top.ask_qty, (long long)top.ask);
  }
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[2], "market") == 0) {
    connect_to(argv[1], 4, argc > 3 ? argv[3] : "");
    return watch();
  }
  if (argc < 4) return 2;
  connect_to(argv[1], 1, argc > 4 ? argv[4] : "");
  uint32_t account = (uint32_t)atoi(argv[2]);
  struct request order = {.block = 56, .template_id = 1, .schema = 111, .version = 1, .correlation = 1, .limit = 99000000,
                          .account = account, .security = (uint32_t)atoi(argv[3]), .qty = 5, .type = 1, .client_id = "from-c"};
  struct record answer = ask(order);
  struct request cancel = {.block = 56, .template_id = 1, .schema = 111, .version = 1, .correlation = 2,
                           .account = account, .order = answer.order, .type = 2};
  ask(cancel);
  return 0;
}
