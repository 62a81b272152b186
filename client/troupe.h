/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TROUPE_H
#define TROUPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * libtroupe: one connection to trouped, the local actor daemon.
 *
 * Results. A function that can fail answers 0 or a negative errno; those that count or decide say so. What the daemon
 * itself refused, and a connection that broke, is -EREMOTEIO, and troupe_error() has the rest. Every function that
 * takes a connection may also answer
 *   -ECHILD    in a child of the process that connected: the connection is the parent's, and nothing was done;
 *   -ENOTCONN  the connection is over, and nothing was sent.
 * Arguments that make no sense are -EINVAL and lack of memory is -ENOMEM; nothing was sent then either.
 *
 * Threads. One connection, and what belongs to it, is usable from one thread at a time; different connections have
 * nothing to do with each other. The library starts no thread, keeps nothing outside its connections, installs no
 * signal handler, raises no SIGPIPE, prints nothing and never aborts. Its descriptors are closed on exec.
 *
 * Ownership. What is passed in stays the caller's and is copied where it is needed later. What comes out is borrowed,
 * until the time that its function names; the few things that the caller must free say with what.
 */

struct troupe;         /* a connection */
struct troupe_pending; /* a request that was sent with a callback and is not answered yet */
struct troupe_asked;   /* the other way round: what was asked of this connection, and is not answered yet */

/* A handle as text, "actor:" or "pool:" and 32 hexadecimal digits, with its NUL. */
#define TROUPE_HANDLE_SIZE 39

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* What a caller has to know of a request that failed: was it handed over? */
enum troupe_ran {
        TROUPE_RAN_NO = 0,    /* never: it is safe to do it again */
        TROUPE_RAN_MAYBE = 1, /* it was, and nobody knows what became of it */
        TROUPE_RAN_YES = 2    /* it ran to its end or to its fault */
};

/* A MessagePack value: `size` bytes at `data`, which are also the raw form. See "Values". */
struct troupe_value {
        const void *data;
        size_t size;
};

struct troupe_error {
        const char *code;    /* "mailbox-full", "fault", "disconnected", ... */
        const char *message; /* a sentence for people; never NULL */
        enum troupe_ran ran;
        struct troupe_value details; /* the daemon's whole error, a map; empty (size 0) where the library says it */
};

/*
 * What the last -EREMOTEIO was about: of the call before this one or, inside a callback, of the request that the
 * callback is about. NULL where there was none. Borrowed until the next call on the connection, or until the callback
 * returns.
 */
const struct troupe_error *troupe_error(const struct troupe *troupe);

/* ---- The connection --------------------------------------------------------------------------------------------- */

/* A flag of troupe_connect(): never wait. The connection may not be there yet when it returns, and requests queue. */
#define TROUPE_NONBLOCK 1u
/* Another: a connection that breaks is made again. See "Restoring" below. */
#define TROUPE_RECONNECT 2u

/*
 * Connects to a daemon's socket, and says hello (typed values, errors as maps) without waiting for the answer.
 *
 * `path` NULL stands for the environment's TROUPE_SOCKET where it is set, else the user's own daemon where one
 * listens ($XDG_RUNTIME_DIR/troupe/troupe.sock, in /run/user/UID where that is not set), else the system's
 * (/run/troupe/troupe.sock).
 *
 * 0 with *ret_troupe, which the caller gives to troupe_free(); or what socket() and connect() say (-ENOENT,
 * -ECONNREFUSED, -EACCES, ...), -ENAMETOOLONG, -EINVAL for unknown flags, with *ret_troupe untouched. TROUPE_RECONNECT
 * does not change that: somebody must listen the first time.
 */
int troupe_connect(struct troupe **ret_troupe, const char *path, unsigned int flags);

/*
 * Closes the connection. Every callback that has not run yet runs now: with its answer where that is here, else with
 * the error `disconnected` (ran: maybe; see "Restoring" for more). Allowed inside a callback; the connection must not be used after it. In a
 * child process it only closes. NULL is fine.
 */
void troupe_free(struct troupe *troupe);

/* The path of its socket. Borrowed until troupe_free(). */
const char *troupe_path(const struct troupe *troupe);

/*
 * Bounds of what may wait here: requests that are not answered, and bytes that the daemon has not taken. Past either
 * of them a call that sends answers -ENOBUFS, and nothing was sent (calls that block wait instead). 0 leaves a bound
 * as it is; at first they are 65536 and 4 MiB. The daemon's own limit of requests, once known, holds too. A single
 * request may be larger than the bytes that are left: it is only the next one that must wait.
 */
int troupe_set_limits(struct troupe *troupe, uint32_t requests, size_t output_bytes);

/*
 * Asks to be told, once after each -ENOBUFS, when there is room again: half of both bounds. The callback runs from
 * troupe_process(). NULL: not to be told. It is never run by troupe_free().
 */
typedef void troupe_room_callback(struct troupe *troupe, void *userdata);
int troupe_on_room(struct troupe *troupe, troupe_room_callback *callback, void *userdata);

/* ---- Values ----------------------------------------------------------------------------------------------------- */

/*
 * A value is bytes of MessagePack with a type on top of them. It is small, is passed by pointer and copied by
 * assignment; the bytes are borrowed from wherever it came from, and so is everything that the functions below find
 * in it. They allocate nothing but where they say so, need no connection, and may be used on bytes from anywhere:
 * what is not MessagePack is -EBADMSG. A value that is not of the type asked for is -EINVAL, with the output
 * untouched.
 */
enum troupe_type {
        TROUPE_NIL = 0,
        TROUPE_BOOL = 1,
        TROUPE_INT = 2,
        TROUPE_FLOAT = 3,
        TROUPE_STRING = 4, /* valid UTF-8 where the daemon sent it */
        TROUPE_BYTES = 5,  /* also strings that are no valid UTF-8 */
        TROUPE_ARRAY = 6,
        TROUPE_MAP = 7,
        TROUPE_HANDLE = 8,
        TROUPE_MESSAGE = 9,   /* a handle and the name of one of its handlers */
        TROUPE_INSTANCE = 10, /* of a class: its name and its fields */
        TROUPE_TIMESTAMP = 11
};

/* One of enum troupe_type, or -EBADMSG. An empty value (size 0) is -EBADMSG too. */
int troupe_value_type(const struct troupe_value *value);

int troupe_value_bool(const struct troupe_value *value, int *ret_bool);
/* Also a float without a fraction that an integer holds. -ERANGE: an integer above INT64_MAX. */
int troupe_value_int(const struct troupe_value *value, int64_t *ret_int);
/* Also an integer, rounded where it must be. */
int troupe_value_float(const struct troupe_value *value, double *ret_float);
/* A string or bytes; there is no NUL behind it. */
int troupe_value_string(const struct troupe_value *value, const char **ret_data, size_t *ret_length);
/* A handle, or a string that is the text of one. */
int troupe_value_handle(const struct troupe_value *value, char ret_handle[TROUPE_HANDLE_SIZE]);
int troupe_value_message(const struct troupe_value *value, char ret_handle[TROUPE_HANDLE_SIZE],
                         const char **ret_handler, size_t *ret_handler_length);
/* The class ("module:Name"), and the fields: a map. */
int troupe_value_instance(const struct troupe_value *value, const char **ret_class, size_t *ret_class_length,
                          struct troupe_value *ret_fields);
/* Seconds since 1970, and 0 to 999,999,999 nanoseconds. */
int troupe_value_timestamp(const struct troupe_value *value, int64_t *ret_seconds, uint32_t *ret_nanoseconds);

/* How many elements an array has, or pairs a map. */
int troupe_value_count(const struct troupe_value *value, size_t *ret_count);
/* One element of an array, counted from 0, or what a map has under a string key; in linear time. -ENOENT: no such. */
int troupe_value_at(const struct troupe_value *array, size_t index, struct troupe_value *ret_element);
int troupe_value_get(const struct troupe_value *map, const char *key, struct troupe_value *ret_element);

/*
 * Going through an array or a map:
 *
 *      struct troupe_walk walk;
 *      int r = troupe_walk_begin(&walk, &value);
 *      while (!r && (r = troupe_walk_next(&walk, &key, &element)) > 0) ...
 *
 * troupe_walk_next() answers 1 with the next element, 0 at the end. The key of an array's element is empty (size 0);
 * ret_key may be NULL. The fields of the walk are the library's own.
 */
struct troupe_walk {
        const void *at;
        const void *end;
        size_t left;
        int is_map;
};
int troupe_walk_begin(struct troupe_walk *walk, const struct troupe_value *value);
int troupe_walk_next(struct troupe_walk *walk, struct troupe_value *ret_key, struct troupe_value *ret_element);

/*
 * The value as JSON text, without spaces, NUL-terminated, which the caller frees with free(). Integers are exact;
 * floats are the shortest text that reads back the same and never look like integers. {"$bin": BASE64}, {"$float":
 * "nan"} (or "inf", "-inf") and {"$handle": "actor:..."} stand for what JSON cannot hold. A message is [handle,
 * handler], an instance the map of its fields, a timestamp RFC 3339 text, a map key its text. ret_length may be NULL.
 */
int troupe_value_json(const struct troupe_value *value, char **ret_text, size_t *ret_length);

/* A copy whose bytes are the caller's, for troupe_value_free(). */
int troupe_value_dup(const struct troupe_value *value, struct troupe_value *ret_copy);
/* Packs one value by a format, see below, for troupe_value_free(). -EINVAL where the format makes none or several. */
int troupe_pack(struct troupe_value *ret_value, const char *format, ...);
/* Frees what troupe_value_dup() and troupe_pack() made, and empties it. Empty is fine. */
void troupe_value_free(struct troupe_value *value);

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

/*
 * Calls that take `format, ...` build the list of a message's arguments from it. Each letter makes one argument and
 * takes these parameters:
 *
 *      n                                    nil
 *      b  int                               a boolean
 *      i  int                               an integer
 *      l  int64_t                           an integer
 *      d  double                            a float
 *      s  const char *                      a string; NULL is nil
 *      S  const char *, size_t              a string, byte for byte
 *      y  const void *, size_t              bytes
 *      h  const char *                      a handle, from its text
 *      t  int64_t, uint32_t                 a timestamp: seconds since 1970, nanoseconds
 *      j  const char *                      any value, from JSON text
 *      J  const char *, size_t              the same, by its length
 *      m  const void *, size_t              one packed MessagePack value
 *      v  const struct troupe_value *       a value
 *      [ ... ]                              an array of what is between
 *      { ... }                              a map of the pairs of key and value that are between
 *      *j *J *m *v                          every element of that array, each as an argument (or element) of its own
 *
 * Spaces, commas and colons may stand between them. NULL and "" stand for no arguments. For example
 *
 *      troupe_ask(t, "ledger", "enter", NULL, &answer, "s{s:l, s:s}", "petty cash", "sum", (int64_t)17, "in", "EUR");
 *      troupe_ask(t, "ledger", "enter", NULL, &answer, "*j", "[\"petty cash\", {\"sum\": 17}]");
 *
 * In JSON text an integer beyond 64 bits is -ERANGE; {"$bin"}, {"$float"} and {"$handle"} are read as they are
 * written. A wrong format, JSON that is none, bytes that are not one MessagePack value and a text that is no handle
 * are -EINVAL.
 */

/* ---- Calls that wait -------------------------------------------------------------------------------------------- */

/*
 * They return when the daemon has answered. Other requests' answers that arrive meanwhile wait for troupe_process().
 * Inside a callback they are -EDEADLK. Signals do not end them.
 *
 * A target is a handle's text or a published name. An answer is borrowed until the next call on the connection that
 * waits; where the parameter may be NULL the answer is dropped. Options may be NULL. They begin with their size
 * (sizeof), so that a program built with an older version of this file goes on working; everything else in them is as
 * before where it is 0.
 */

struct troupe_hello_options {
        size_t size;
        const char *client;  /* what the program calls itself, for the daemon's log */
        uint64_t timeout_ms; /* the default deadline of this connection's requests from here on */
};

struct troupe_spawn_options {
        size_t size;
        const char *name;    /* a label for people */
        const char *publish; /* the name to publish it under */
        uint64_t heap_bytes;
        uint64_t mailbox; /* messages */
        uint64_t mailbox_bytes;
        uint32_t async; /* asynchronous handlers in progress */
        uint32_t flags; /* TROUPE_SPAWN_* */
};
#define TROUPE_SPAWN_DETACH 1u    /* it belongs to the daemon's session, and outlives this connection */
#define TROUPE_SPAWN_IF_ABSENT 2u /* with `publish`: the holder's handle, where the name is held */

struct troupe_ask_options {
        size_t size;
        uint64_t timeout_ms;
        const char *trace; /* a W3C traceparent */
};

struct troupe_done_options {
        size_t size;
        uint64_t timeout_ms;
};

struct troupe_stop_options {
        size_t size;
        uint64_t within_ms; /* killed where it has not ended by then */
        uint32_t flags;     /* TROUPE_STOP_* */
};
#define TROUPE_STOP_KILL 1u /* at once */

struct troupe_call_options {
        size_t size;
        uint64_t timeout_ms;
        const char *instance; /* the replica that it is addressed to */
        const char *id;       /* the entity's */
        const char *trace;    /* a W3C traceparent */
};

struct troupe_task_options {
        size_t size;
        uint64_t delay_ms;
        uint64_t at_ms;      /* or when it is due, since 1970 */
        uint64_t expires_ms; /* dropped where it is that late */
        const char *key;     /* the same task as one that waits with this key */
        const char *id;      /* the entity's */
        const char *trace;
};

/* Says hello again. The answer is the daemon's map (server, version, protocol, limits, you); ret_answer may be NULL. */
int troupe_hello(struct troupe *troupe, const struct troupe_hello_options *options, struct troupe_value *ret_answer);
/* Any method, by its name; the format makes its params. ret_answer may be NULL. */
int troupe_request(struct troupe *troupe, const char *method, struct troupe_value *ret_answer, const char *format, ...);
/* The handle published under a name. -ENOENT: nobody holds it. */
int troupe_find(struct troupe *troupe, const char *name, char ret_handle[TROUPE_HANDLE_SIZE]);
/* Starts an actor, "module:Name" or "module"; returns once its constructor has. ret_handle may be NULL. */
int troupe_spawn(struct troupe *troupe, const char *actor, const struct troupe_spawn_options *options,
                 char ret_handle[TROUPE_HANDLE_SIZE], const char *format, ...);
/* Returns once the message is in the mailbox. */
int troupe_send(struct troupe *troupe, const char *target, const char *handler, const char *format, ...);
/* Returns what the handler answered. ret_answer may be NULL. */
int troupe_ask(struct troupe *troupe, const char *target, const char *handler, const struct troupe_ask_options *options,
               struct troupe_value *ret_answer, const char *format, ...);
/* Returns once the actor has ended: 0 where it ended orderly, else how it failed is the error. */
int troupe_done(struct troupe *troupe, const char *target, const struct troupe_done_options *options);
/* Asks it to stop; returns at once. */
int troupe_stop(struct troupe *troupe, const char *target, const struct troupe_stop_options *options);
int troupe_publish(struct troupe *troupe, const char *name, const char *target);
int troupe_unpublish(struct troupe *troupe, const char *name);
/* Makes an actor outlive this connection. */
int troupe_detach(struct troupe *troupe, const char *target);
/* Calls an operation of a component, and returns its output. The format makes the input, one value (none: nil).
 * ret_answer may be NULL. */
int troupe_call(struct troupe *troupe, const char *component, const char *operation,
                const struct troupe_call_options *options, struct troupe_value *ret_answer, const char *format, ...);
/* The same as a task, which nobody waits for: returns its id, a string, once it is on the daemon's disk. */
int troupe_task(struct troupe *troupe, const char *component, const char *operation,
                const struct troupe_task_options *options, struct troupe_value *ret_answer, const char *format, ...);

/* ---- Calls with a callback -------------------------------------------------------------------------------------- */

/*
 * They queue the request and return at once: 0, or why nothing was sent (-ENOBUFS: see troupe_set_limits). What is
 * queued goes out with the next troupe_process(), or earlier where it is much.
 *
 * After 0 the callback runs exactly once, from troupe_process() or troupe_free(), never from the call that made it:
 * `result` is 0 with the answer, or a negative errno with `answer` NULL (-EREMOTEIO and troupe_error(); the code
 * `disconnected` where the connection broke or was freed). The answer is borrowed until the callback returns. Inside
 * a callback every call that does not wait is allowed. A NULL callback drops the answer.
 *
 * *ret_pending, where ret_pending is not NULL, is borrowed until the callback has returned, and is for
 * troupe_cancel().
 */
typedef void troupe_callback(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata);

int troupe_hello_async(struct troupe *troupe, const struct troupe_hello_options *options, troupe_callback *callback,
                       void *userdata, struct troupe_pending **ret_pending);
int troupe_request_async(struct troupe *troupe, const char *method, troupe_callback *callback, void *userdata,
                         struct troupe_pending **ret_pending, const char *format, ...);
/* The answer is the handle, or nil. */
int troupe_find_async(struct troupe *troupe, const char *name, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending);
/* The answer is the handle. */
int troupe_spawn_async(struct troupe *troupe, const char *actor, const struct troupe_spawn_options *options,
                       troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending,
                       const char *format, ...);
int troupe_send_async(struct troupe *troupe, const char *target, const char *handler, troupe_callback *callback,
                      void *userdata, struct troupe_pending **ret_pending, const char *format, ...);
int troupe_ask_async(struct troupe *troupe, const char *target, const char *handler,
                     const struct troupe_ask_options *options, troupe_callback *callback, void *userdata,
                     struct troupe_pending **ret_pending, const char *format, ...);
int troupe_done_async(struct troupe *troupe, const char *target, const struct troupe_done_options *options,
                      troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending);
int troupe_stop_async(struct troupe *troupe, const char *target, const struct troupe_stop_options *options,
                      troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending);
int troupe_publish_async(struct troupe *troupe, const char *name, const char *target, troupe_callback *callback,
                         void *userdata, struct troupe_pending **ret_pending);
int troupe_unpublish_async(struct troupe *troupe, const char *name, troupe_callback *callback, void *userdata,
                           struct troupe_pending **ret_pending);
int troupe_detach_async(struct troupe *troupe, const char *target, troupe_callback *callback, void *userdata,
                        struct troupe_pending **ret_pending);
int troupe_call_async(struct troupe *troupe, const char *component, const char *operation,
                      const struct troupe_call_options *options, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending, const char *format, ...);
/* The answer is the task's id. */
int troupe_task_async(struct troupe *troupe, const char *component, const char *operation,
                      const struct troupe_task_options *options, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending, const char *format, ...);

/*
 * A notification: nobody answers it, and nobody says what became of it. The format makes the params of the method; a
 * message to an actor is troupe_notify(t, "send", "ss[...]", target, handler, ...).
 */
int troupe_notify(struct troupe *troupe, const char *method, const char *format, ...);

/*
 * Takes a request back. Its callback still runs, with the error `cancelled` where this came in time (what was still
 * queued then never runs), else with its answer. Works past the limits.
 */
int troupe_cancel(struct troupe_pending *pending);

/* ---- What comes from the daemon --------------------------------------------------------------------------------- */

/*
 * Callbacks for what nobody asked for one by one. They run from troupe_process() only, any number of times, in the
 * order in which things came and, as to answers, after the answer that it began with; not any more once the connection
 * is over, or is being freed. What they are given is borrowed until they return. Inside of one every call that does not
 * wait is allowed.
 *
 * What comes while a call waits is kept for troupe_process(), up to 16 MiB of it. Beyond that a call that waits answers
 * -EOVERFLOW, until troupe_process() has been called: nothing of what came is lost, but where the call was waiting
 * already its request is out, and its answer is dropped.
 */

/* What has happened: a map. `topic` is one that was subscribed to. */
typedef void troupe_event_callback(struct troupe *troupe, const char *topic, const struct troupe_value *event,
                                   void *userdata);

struct troupe_subscribe_options {
        size_t size;
        uint64_t rate; /* events a second at most; an event's `dropped` says how many were left out before it */
};

/* Subscribes to a topic ("lifecycle", "log", "refused", ...). A second time for the same topic replaces the callback
 * and the options, where the daemon agrees. */
int troupe_subscribe(struct troupe *troupe, const char *topic, const struct troupe_subscribe_options *options,
                     troupe_event_callback *on_event, void *event_userdata);
int troupe_subscribe_async(struct troupe *troupe, const char *topic, const struct troupe_subscribe_options *options,
                           troupe_event_callback *on_event, void *event_userdata, troupe_callback *callback,
                           void *userdata, struct troupe_pending **ret_pending);
/* Once it has returned, or its callback runs, no event of the topic comes any more. */
int troupe_unsubscribe(struct troupe *troupe, const char *topic);
int troupe_unsubscribe_async(struct troupe *troupe, const char *topic, troupe_callback *callback, void *userdata,
                             struct troupe_pending **ret_pending);

/*
 * Listening: the connection has a handle, which can be passed on like any other, and what actors send to it and ask of
 * it comes here. `args` is an array. `asked` is NULL for what was sent; what was asked is to be answered, see below.
 */
typedef void troupe_message_callback(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                                     struct troupe_asked *asked, void *userdata);

/* ret_handle may be NULL. A second time it only replaces the callback. */
int troupe_listen(struct troupe *troupe, troupe_message_callback *on_message, void *message_userdata,
                  char ret_handle[TROUPE_HANDLE_SIZE]);
/* The answer is the handle. */
int troupe_listen_async(struct troupe *troupe, troupe_message_callback *on_message, void *message_userdata,
                        troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending);

/*
 * Serving: the connection is a replica of a component, and calls of its operations come here, each to be answered.
 * `context` is a map: component, instance, caller, attempt, ...
 */
typedef void troupe_operation_callback(struct troupe *troupe, const char *operation, const struct troupe_value *input,
                                       const struct troupe_value *context, struct troupe_asked *asked, void *userdata);
/* Nobody waits for this answer any more. It is still to be given: only then is the replica free for another call. */
typedef void troupe_cancelled_callback(struct troupe *troupe, struct troupe_asked *asked, void *userdata);

struct troupe_serve_options {
        size_t size;
        const char *instance;          /* the name that this replica asks for */
        const char *const *operations; /* those that it serves, with NULL at the end; NULL: all */
        uint32_t concurrency;          /* calls that it works on at once */
        troupe_cancelled_callback *on_cancelled;
};

/* The answer is a map with `instance`; ret_answer may be NULL. */
int troupe_serve(struct troupe *troupe, const char *component, const struct troupe_serve_options *options,
                 troupe_operation_callback *on_operation, void *operation_userdata, struct troupe_value *ret_answer);
int troupe_serve_async(struct troupe *troupe, const char *component, const struct troupe_serve_options *options,
                       troupe_operation_callback *on_operation, void *operation_userdata, troupe_callback *callback,
                       void *userdata, struct troupe_pending **ret_pending);
/* Ends that: answered once all the calls that are here have been (so there is no form that waits). */
int troupe_withdraw_async(struct troupe *troupe, const char *component, troupe_callback *callback, void *userdata,
                          struct troupe_pending **ret_pending);

/*
 * Answering what was asked, inside the callback that brought it or at any time after, exactly once: with the value that
 * the format makes (none: nil), or with an error. `error` is a sentence for whoever asked or, of an operation, the name
 * of an error that it declares, to which the format may add data.
 *
 * 0, and `asked` is gone; -ENOTCONN, and it is gone too: the connection that it came through is no more. With any other
 * error it is still to be answered. They work past the limits, and an answer goes out as requests do. What the program
 * does not answer is freed by troupe_free().
 */
int troupe_reply(struct troupe_asked *asked, const char *format, ...);
int troupe_refuse(struct troupe_asked *asked, const char *error, const char *format, ...);

/* ---- Restoring -------------------------------------------------------------------------------------------------- */

/*
 * With TROUPE_RECONNECT a connection does not end when it breaks: the library connects again, to the same path, as soon
 * as somebody listens there (it tries after 10 ms, then less and less often, at least every 2 s), from troupe_process()
 * or inside a call that waits. Then it restores what was agreed on: the last troupe_hello(), subscriptions, listening
 * and serving, each with its callback. What belongs to the daemon's side of a connection is not restored: the actors
 * that it started are gone, with the names that they had, and listening has another handle (troupe_own_handle).
 *
 * No request is ever sent twice. One that was not answered when the connection broke ends with the error `disconnected`
 * and says what is known of it: ran is `maybe`, or `no` where it was still queued here. What is asked while there is no
 * connection waits for the next one, behind what is restored; a call that waits does that too, for as long as it takes.
 *
 * The program is told by a callback, which runs from troupe_process():
 *   TROUPE_LINK_LOST      the connection broke; the callbacks of the requests that this has ended have run;
 *   TROUPE_LINK_REFUSED   the daemon did not agree again to what `method` and `name` say ("subscribe" and the topic,
 *                         "serve" and the component, "listen" and "", "hello" and ""): troupe_error() has why, and it
 *                         is not asked for any more;
 *   TROUPE_LINK_RESTORED  there is a connection again, with everything else restored.
 * `method` and `name` are NULL but for the second. A daemon that refuses the library's own hello is tried again, unless
 * what it says is that this library makes a mistake: then the connection is over.
 */
enum troupe_link {
        TROUPE_LINK_LOST = 0,
        TROUPE_LINK_REFUSED = 1,
        TROUPE_LINK_RESTORED = 2
};
typedef void troupe_link_callback(struct troupe *troupe, enum troupe_link link, const char *method, const char *name,
                                  void *userdata);
/* NULL: not to be told. */
int troupe_on_link(struct troupe *troupe, troupe_link_callback *callback, void *userdata);
/* The handle that the connection listens under now. -ENOENT: it does not listen, or is not restored yet. */
int troupe_own_handle(const struct troupe *troupe, char ret_handle[TROUPE_HANDLE_SIZE]);

/* ---- In an event loop ------------------------------------------------------------------------------------------- */

/*
 * What to wait for: the descriptor, the events of poll(2) on it, and a time. Ask for all of them again after every
 * call on the connection, callbacks included: each of them may have changed.
 */

/* The descriptor, which stays the connection's. -EAGAIN while it is not connected (yet, or just now), -ENOTCONN
 * once the connection is over: then there is none to wait for (poll(2) passes a negative one over). */
int troupe_fd(const struct troupe *troupe);
/* POLLIN, POLLOUT or both; 0 where nothing can come from the descriptor now. */
int troupe_events(const struct troupe *troupe);
/* When to call troupe_process() although nothing happens on the descriptor, from now: 0 at once, -1 never. */
int troupe_timeout_ms(const struct troupe *troupe);
/*
 * Does what can be done without waiting: writes what is queued, reads what is there, and runs the callbacks of all
 * that is complete. `revents` is what poll(2) said; -1 where nobody asked it.
 *
 * 0: done, wait again. 1: call again, there is more than one call should do. -ENOMEM: call again, nothing was lost.
 * -ENOTCONN: the connection is over, and every callback has run; also where a callback freed it, so then it must not be
 * touched. Inside a callback it does nothing.
 */
int troupe_process(struct troupe *troupe, int revents);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
