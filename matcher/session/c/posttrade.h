/*
 * posttrade.h: sessions of posttrade over shared memory, for C and C++ on Linux.
 *
 *   struct pt_session s;
 *   uint32_t acme;
 *   if (pt_open(&s, "/run/posttrade/session.sock", PT_ORDERS, token) == PT_OK &&
 *       pt_security(&s, "ACME", &acme) == PT_OK && acme != 0) {
 *     struct pt_request r = pt_order(1, 7, acme, PT_BUY, 100, 99 * PT_UNIT);
 *     struct pt_record a;
 *     if (pt_submit(&s, &r) && pt_receive(&s, &a, 1000000000) == PT_OK)
 *       printf("%s, sequence %llu\n", pt_status_name(a.status), (unsigned long long)a.sequence);
 *   }
 *   pt_close(&s);
 *
 * There is no library: every function is in this file. It needs the system's own declarations: with a
 * strict -std=cNN, such as -std=c99 or -std=c11, define _DEFAULT_SOURCE before the first #include.
 * -std=gnuNN and C++ need nothing. A session belongs to one thread. A signal ends no call before its
 * time: an interrupted call goes on. Prices, rates and costs are whole numbers of millionths (PT_UNIT).
 * docs/sessions.md says what an answer promises.
 */
#ifndef POSTTRADE_H
#define POSTTRADE_H

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PT_UNIT = 1000000 };

/* The purpose of a session. */
enum { PT_ORDERS = 1, PT_DROP_COPY = 2, PT_TRADES = 3, PT_MARKET = 4 };

/* What the server says of a session. Negative results of functions are -errno. */
enum {
  PT_OK = 0,
  PT_BAD_FRAME = 1,
  PT_BAD_VERSION = 2,
  PT_BAD_TOKEN = 3,
  PT_TOO_MANY = 4,
  PT_BAD_CURSOR = 5,
  PT_SHUTDOWN = 6,
  PT_NO_MEMORY = 7,
  PT_NO_SUCH_ROLE = 8,
  PT_TOKEN_EXPIRED = 9,
  PT_ASIDE = 10 /* the server's history is in doubt: ask another member */
};

/* pt_request.type */
enum {
  PT_NEW = 1,
  PT_CANCEL = 2,
  PT_MARKET_TRADE = 5,
  PT_REPLACE = 11,
  PT_SWAP = 12,
  PT_SWAPTION = 13
};

/* pt_request.side and pt_record.side */
enum { PT_BUY = 0, PT_SELL = 1 };

/* pt_request.flags of a new order: at most one */
enum { PT_IOC = 2, PT_FOK = 4, PT_POST_ONLY = 8 };

/* pt_record.kind */
enum {
  PT_ANSWER = 1, /* the outcome of one command; always exactly one */
  PT_FILL = 2,   /* an execution of that command's order; pt_record.fills of them follow */
  PT_COPY = 3,   /* drop copy: one event of an account */
  PT_TRADE = 4,  /* an execution, without accounts and orders */
  PT_GAP = 5,    /* pt_record.missed records were lost here, or, when the server was too slow, events of all accounts */
  PT_NAME = 6,   /* drop copy: the client id of the order before it, at pt_name */
  PT_TOP = 7     /* best levels of a security, at pt_top */
};

/* pt_record.code of an answer */
enum {
  PT_DECIDED = 0,     /* sequenced; PT_REJECTED says why in reason */
  PT_MALFORMED = 1,   /* never sequenced, as the next two */
  PT_NOT_ENTITLED = 2,
  PT_NOT_FOUND = 3,
  PT_CONFLICT = 4,    /* the client id was used with other terms, or the order has ended */
  PT_NOT_READY = 5,   /* not sequenced: safe to send again */
  PT_BUSY = 6,        /* not sequenced: safe to send again */
  PT_UNAVAILABLE = 7, /* not sequenced: the journal has failed or is full */
  PT_UNKNOWN = 8,     /* applied once or not at all: send it again with the same client id */
  PT_REFUSED = 9      /* refused by the gate for reason, and not sequenced */
};

/* pt_record.status */
enum {
  PT_STATUS_NEW = 0,
  PT_PARTIALLY_FILLED = 1,
  PT_FILLED = 2,
  PT_CANCELED = 3,
  PT_REJECTED = 4,
  PT_STATUS_UNSTATED = 255 /* a repeated client id of an order that has ended and is no longer held */
};

/* pt_record.flags */
enum {
  PT_AGGRESSOR = 4,   /* a fill of the incoming side */
  PT_RESTS = 8,       /* the order rests on the book */
  PT_KEPT_PLACE = 16, /* a replace that kept its priority */
  PT_IS_MARKET = 32,  /* a market trade: there is no order */
  PT_FORCED = 64,     /* a force fill */
  PT_DUPLICATE = 256, /* the first decision, repeated */
  PT_SNAPSHOT = 512   /* a top that repeats the state; security 0: their end */
};

/* Frames on the socket, and places in the two regions. */
enum {
  PT_MAGIC = 0x31535450,
  PT_PROTOCOL = 1,
  PT_HELLO = 1,
  PT_WELCOME = 2,
  PT_RENEW = 3,
  PT_RENEWED = 4,
  PT_LOOKUP = 5,
  PT_FOUND = 6,
  PT_GOODBYE = 7,
  PT_MAX_TOKEN = 4096,
  PT_PUBLISHED = 4096, /* in both regions */
  PT_TAKEN = 4224,
  PT_DOORBELL = 4352,
  PT_SLOTS = 8192, /* in both regions */
  PT_SLOT_BYTES = 128,
  PT_WAITER = 128 /* in the client's page */
};

/* A command. pt_order, pt_cancel and pt_replace fill it in. */
struct pt_request {
  uint16_t block, template_id, schema, version; /* 56, 1, 111, 1 */
  uint64_t correlation; /* the caller's number; comes back in every record about the command */
  int64_t zero_time;
  int64_t limit; /* 0: a market order */
  int64_t zero_price;
  uint32_t order; /* of cancel and replace */
  uint32_t account, security;
  int32_t qty; /* of a replace the new total */
  uint32_t zero_epoch;
  uint8_t type, side;
  uint16_t flags;
  char client_id[64]; /* printable ASCII, padded with zeros; the same id is decided once */
};

/* What the server says. Which members a kind has: matcher/session/doc.go. */
struct pt_record {
  uint8_t kind, code, what, side, status, reason;
  uint16_t flags;
  uint64_t correlation, sequence; /* sequence 0: not sequenced */
  int64_t time;                   /* milliseconds since 1970 */
  int64_t price, last_price;
  uint64_t trade;
  uint32_t order, account, security;
  int32_t qty, leaves, last_qty; /* leaves -1: not stated */
  uint32_t fills, era;           /* the order is ord-<era * 2^32 + order> */
  uint64_t missed;
  int64_t position, average_cost, limit;
  uint64_t zero;
};

/* The levels of a record of kind PT_TOP. A side without orders has zeros. */
struct pt_top {
  int64_t bid, bid_qty, ask, ask_qty;
  uint32_t bid_orders, ask_orders;
};

#define PT_JOIN_(a, b) a##b
#define PT_JOIN(a, b) PT_JOIN_(a, b)
#define PT_ASSERT(what) typedef char PT_JOIN(pt_assert_, __LINE__)[(what) ? 1 : -1] __attribute__((unused))
#define PT_AT(type, member, at) PT_ASSERT(offsetof(struct type, member) == (at))

PT_ASSERT(sizeof(struct pt_request) == PT_SLOT_BYTES);
PT_ASSERT(sizeof(struct pt_record) == PT_SLOT_BYTES);
PT_AT(pt_request, correlation, 8);
PT_AT(pt_request, limit, 24);
PT_AT(pt_request, order, 40);
PT_AT(pt_request, account, 44);
PT_AT(pt_request, security, 48);
PT_AT(pt_request, qty, 52);
PT_AT(pt_request, type, 60);
PT_AT(pt_request, side, 61);
PT_AT(pt_request, flags, 62);
PT_AT(pt_request, client_id, 64);
PT_AT(pt_record, code, 1);
PT_AT(pt_record, what, 2);
PT_AT(pt_record, side, 3);
PT_AT(pt_record, status, 4);
PT_AT(pt_record, reason, 5);
PT_AT(pt_record, flags, 6);
PT_AT(pt_record, correlation, 8);
PT_AT(pt_record, sequence, 16);
PT_AT(pt_record, time, 24);
PT_AT(pt_record, price, 32);
PT_AT(pt_record, last_price, 40);
PT_AT(pt_record, trade, 48);
PT_AT(pt_record, order, 56);
PT_AT(pt_record, account, 60);
PT_AT(pt_record, security, 64);
PT_AT(pt_record, qty, 68);
PT_AT(pt_record, leaves, 72);
PT_AT(pt_record, last_qty, 76);
PT_AT(pt_record, fills, 80);
PT_AT(pt_record, era, 84);
PT_AT(pt_record, missed, 88);
PT_AT(pt_record, position, 96);
PT_AT(pt_record, average_cost, 104);
PT_AT(pt_record, limit, 112);
PT_AT(pt_top, bid, 0);
PT_AT(pt_top, bid_qty, 8);
PT_AT(pt_top, ask, 16);
PT_AT(pt_top, ask_qty, 24);
PT_AT(pt_top, bid_orders, 32);
PT_AT(pt_top, ask_orders, 36);

struct pt_head {
  uint32_t magic;
  uint16_t protocol, kind;
  uint32_t bytes, status;
};

struct pt_welcome {
  struct pt_head head;
  uint64_t session, command_bytes, client_page, event_bytes;
  uint32_t command_slots, event_slots, quota, zero[3];
};

struct pt_session {
  int socket;
  char *commands, *events; /* the two regions; the second is read-only */
  int64_t sent, seen;      /* commands written and records read, ever */
  struct pt_welcome welcome;
};

/* pt_send sends a frame whose body is some bytes. */
static inline int pt_send(int socket, int kind, const void *body, size_t length) {
  char frame[sizeof(struct pt_head) + 16 + PT_MAX_TOKEN];
  struct pt_head head = {PT_MAGIC, PT_PROTOCOL, (uint16_t)kind, (uint32_t)(sizeof head + length), 0};
  if (length > sizeof frame - sizeof head) return -EMSGSIZE;
  memcpy(frame, &head, sizeof head);
  memcpy(frame + sizeof head, body, length);
  ssize_t n;
  do n = send(socket, frame, sizeof head + length, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : PT_OK;
}

/* pt_await reads the answer to a frame. Its first bytes of body go to answer. It does not give up when
   a signal interrupts it: the next call would take this answer for its own. */
static inline int pt_await(int socket, int kind, void *answer, size_t length) {
  char frame[sizeof(struct pt_head) + 512];
  struct pt_head head;
  ssize_t n;
  do n = recv(socket, frame, sizeof frame, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0) return -errno;
  if (n < (ssize_t)sizeof head) return n == 0 ? -ECONNRESET : -EPROTO;
  memcpy(&head, frame, sizeof head);
  if (head.magic != PT_MAGIC || head.protocol != PT_PROTOCOL) return -EPROTO;
  if (head.status != PT_OK) return (int)head.status; /* also of a goodbye */
  if (head.kind != kind || (size_t)n < sizeof head + length) return -EPROTO;
  if (length > 0) memcpy(answer, frame + sizeof head, length);
  return PT_OK;
}

/* pt_close ends a session. Orders that rest stay on the book. */
static inline void pt_close(struct pt_session *s) {
  if (s->commands != NULL) munmap(s->commands, s->welcome.command_bytes);
  if (s->events != NULL) munmap(s->events, s->welcome.event_bytes);
  if (s->socket >= 0) close(s->socket);
  s->commands = s->events = NULL;
  s->socket = -1;
}

/* pt_map maps the regions whose descriptors came with a welcome. */
static inline int pt_map(struct pt_session *s, const int fds[2]) {
  void *commands = mmap(NULL, s->welcome.command_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
  void *events = mmap(NULL, s->welcome.event_bytes, PROT_READ, MAP_SHARED, fds[1], 0);
  int failed = errno;
  close(fds[0]);
  close(fds[1]);
  if (commands != MAP_FAILED) s->commands = (char *)commands;
  if (events != MAP_FAILED) s->events = (char *)events;
  return s->commands == NULL || s->events == NULL ? -failed : PT_OK;
}

/* pt_greet sends the hello on a connected socket and takes the welcome. */
static inline int pt_greet(struct pt_session *s, uint32_t role, const char *token) {
  char hello[16 + PT_MAX_TOKEN] = {0};
  size_t length = strlen(token);
  if (length > PT_MAX_TOKEN) return -EMSGSIZE;
  memcpy(hello, &role, sizeof role); /* ring sizes of 0: the server chooses */
  memcpy(hello + 16, token, length);
  int bad = pt_send(s->socket, PT_HELLO, hello, 16 + length);
  if (bad) return bad;

  union {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  int fds[2];
  struct iovec part = {&s->welcome, sizeof s->welcome};
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t n;
  do n = recvmsg(s->socket, &message, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0) return -errno;
  if (n < (ssize_t)sizeof(struct pt_head) || s->welcome.head.magic != PT_MAGIC) return -EPROTO;
  if (s->welcome.head.status != PT_OK) return (int)s->welcome.head.status;
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  if (s->welcome.head.kind != PT_WELCOME || rights == NULL || rights->cmsg_len != CMSG_LEN(sizeof fds))
    return -EPROTO;
  memcpy(fds, CMSG_DATA(rights), sizeof fds);
  return pt_map(s, fds);
}

/* pt_open begins a session on the server's session.socket. token may be "" where none is asked for.
   It returns PT_OK, why the server refuses (PT_BAD_TOKEN, ...), or -errno. */
static inline int pt_open(struct pt_session *s, const char *path, uint32_t role, const char *token) {
  memset(s, 0, sizeof *s);
  struct sockaddr_un to;
  memset(&to, 0, sizeof to);
  to.sun_family = AF_UNIX;
  s->socket = -1;
  if (strlen(path) >= sizeof to.sun_path) return -ENAMETOOLONG;
  memcpy(to.sun_path, path, strlen(path));
  s->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (s->socket < 0) return -errno;
  int bad;
  do bad = connect(s->socket, (struct sockaddr *)&to, sizeof to) < 0 ? -errno : PT_OK;
  while (bad == -EINTR); /* nothing is begun then: a local socket connects at once or not at all */
  if (bad == PT_OK) bad = pt_greet(s, role, token);
  if (bad != PT_OK) pt_close(s);
  return bad;
}

/* pt_security looks up a ticker's number, which stays the same for the life of the journal. id is 0
   when there is no such security. */
static inline int pt_security(struct pt_session *s, const char *ticker, uint32_t *id) {
  int bad = pt_send(s->socket, PT_LOOKUP, ticker, strlen(ticker));
  return bad ? bad : pt_await(s->socket, PT_FOUND, id, sizeof *id);
}

/* pt_renew gives the session another token of the same subject. */
static inline int pt_renew(struct pt_session *s, const char *token) {
  int bad = pt_send(s->socket, PT_RENEW, token, strlen(token));
  return bad ? bad : pt_await(s->socket, PT_RENEWED, NULL, 0);
}

static inline struct pt_request pt_command(uint8_t type, uint64_t correlation, uint32_t account) {
  struct pt_request r;
  memset(&r, 0, sizeof r);
  r.block = 56;
  r.template_id = 1;
  r.schema = 111;
  r.version = 1;
  r.correlation = correlation;
  r.account = account;
  r.type = type;
  return r;
}

/* pt_order is a limit order, or a market order with limit 0. */
static inline struct pt_request pt_order(uint64_t correlation, uint32_t account, uint32_t security,
                                         uint8_t side, int32_t qty, int64_t limit) {
  struct pt_request r = pt_command(PT_NEW, correlation, account);
  r.security = security;
  r.side = side;
  r.qty = qty;
  r.limit = limit;
  return r;
}

/* pt_cancel cancels the order of an answer. */
static inline struct pt_request pt_cancel(uint64_t correlation, uint32_t account, uint32_t order) {
  struct pt_request r = pt_command(PT_CANCEL, correlation, account);
  r.order = order;
  return r;
}

/* pt_replace gives an order a new total quantity and limit. */
static inline struct pt_request pt_replace(uint64_t correlation, uint32_t account, uint32_t order,
                                           int32_t qty, int64_t limit) {
  struct pt_request r = pt_command(PT_REPLACE, correlation, account);
  r.order = order;
  r.qty = qty;
  r.limit = limit;
  return r;
}

/* pt_submit hands in a command. 0: the ring is full, read answers first. */
static inline int pt_submit(struct pt_session *s, const struct pt_request *r) {
  int64_t taken = __atomic_load_n((int64_t *)(s->commands + PT_TAKEN), __ATOMIC_ACQUIRE);
  if (s->sent - taken >= (int64_t)s->welcome.command_slots) return 0;
  memcpy(s->commands + PT_SLOTS + PT_SLOT_BYTES * (s->sent & (s->welcome.command_slots - 1)), r, sizeof *r);
  __atomic_store_n((int64_t *)(s->commands + PT_PUBLISHED), ++s->sent, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  uint32_t *doorbell = (uint32_t *)(s->commands + PT_DOORBELL), parked = 1;
  if (__atomic_load_n(doorbell, __ATOMIC_SEQ_CST) == 1 &&
      __atomic_compare_exchange_n(doorbell, &parked, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
  return 1;
}

/* pt_poll takes the next record when there is one. */
static inline int pt_poll(struct pt_session *s, struct pt_record *r) {
  if (__atomic_load_n((int64_t *)(s->events + PT_PUBLISHED), __ATOMIC_ACQUIRE) == s->seen) return 0;
  memcpy(r, s->events + PT_SLOTS + PT_SLOT_BYTES * (s->seen & (s->welcome.event_slots - 1)), sizeof *r);
  __atomic_store_n((int64_t *)(s->commands + s->welcome.client_page), ++s->seen, __ATOMIC_RELEASE);
  return 1;
}

/* pt_ended tells why the server has ended the session; PT_OK: it has not. */
static inline int pt_ended(struct pt_session *s) {
  struct pollfd on = {s->socket, POLLIN, 0};
  char none;
  if (poll(&on, 1, 0) <= 0) return PT_OK;
  return pt_await(s->socket, PT_GOODBYE, &none, 0);
}

/* pt_clock is a time in nanoseconds that only rises. */
static inline int64_t pt_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* pt_receive waits for the next record: PT_OK, -ETIMEDOUT after most_ns, or why the session ended.
   It sleeps while it waits; for the shortest wait call pt_poll in a loop. */
static inline int pt_receive(struct pt_session *s, struct pt_record *r, int64_t most_ns) {
  uint32_t *waiter = (uint32_t *)(s->commands + s->welcome.client_page + PT_WAITER);
  int64_t *published = (int64_t *)(s->events + PT_PUBLISHED);
  if (pt_poll(s, r)) return PT_OK;
  int64_t began = pt_clock();
  while (!pt_poll(s, r)) {
    int ended = pt_ended(s);
    if (ended != PT_OK && !pt_poll(s, r)) return ended;
    if (ended != PT_OK) return PT_OK;
    int64_t passed = pt_clock() - began;
    if (passed >= most_ns) return -ETIMEDOUT;
    struct timespec nap = {0, most_ns - passed < 50000000 ? (long)(most_ns - passed) : 50000000};
    __atomic_store_n(waiter, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(published, __ATOMIC_SEQ_CST) == s->seen)
      syscall(SYS_futex, waiter, FUTEX_WAIT, 1, &nap, NULL, 0);
    __atomic_store_n(waiter, 0, __ATOMIC_SEQ_CST);
  }
  return PT_OK;
}

/* pt_best returns the levels of a record of kind PT_TOP. */
static inline struct pt_top pt_best(const struct pt_record *r) {
  struct pt_top top;
  memcpy(&top, (const char *)r + PT_SLOT_BYTES - sizeof top, sizeof top);
  return top;
}

/* pt_name returns the client id of a record of kind PT_NAME: 64 bytes, padded with zeros. */
static inline const char *pt_name(const struct pt_record *r) { return (const char *)r + PT_SLOT_BYTES - 64; }

static inline const char *pt_status_name(uint8_t status) {
  static const char *const names[] = {"NEW", "PARTIALLY_FILLED", "FILLED", "CANCELED", "REJECTED"};
  return status < sizeof names / sizeof *names ? names[status] : "?";
}

static inline const char *pt_code_name(uint8_t code) {
  static const char *const names[] = {"DECIDED",   "MALFORMED", "NOT_ENTITLED", "NOT_FOUND", "CONFLICT",
                                      "NOT_READY", "BUSY",      "UNAVAILABLE",  "UNKNOWN",   "REFUSED"};
  return code < sizeof names / sizeof *names ? names[code] : "?";
}

static inline const char *pt_reason_name(uint8_t reason) {
  static const char *const names[] = {
      "ACCEPTED",        "INVALID",           "NOT_ENTITLED",       "UNKNOWN_ACCOUNT",
      "ACCOUNT_DISABLED", "UNKNOWN_SECURITY", "SECURITY_DISABLED",  "RESTRICTED",
      "KILL_SWITCH",     "PRICE_MISSING",     "PRICE_STALE",        "PRICE_COLLAR",
      "ORDER_SIZE",      "ORDER_NOTIONAL",    "CREDIT_LIMIT",       "POSITION_LIMIT",
      "CONCENTRATION_LIMIT", "DUPLICATE",     "CONTROL_STATE_STALE", "CAPACITY",
      "INTERNAL_POLICY_ERROR", "SELF_TRADE_PREVENTED"};
  return reason < sizeof names / sizeof *names ? names[reason] : "?";
}

#ifdef __cplusplus
}
#endif

#endif
