/* log_journal.h: events for systemd's journal, in its native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/): one datagram an event, a field a line.
 *
 *     PRIORITY=4
 *     SYSLOG_IDENTIFIER=shoal
 *     MESSAGE=agent worker_exited replica=home-intent/0 signal=11
 *     SHOAL_COMPONENT=agent
 *     SHOAL_EVENT=worker_exited
 *     SHOAL_REPLICA=home-intent/0
 *     SHOAL_SIGNAL=11
 *
 * Each field of the event is SHOAL_ and its key in capitals. A value with a line end is written with its length. */
#ifndef LOGGING_LOG_JOURNAL_H
#define LOGGING_LOG_JOURNAL_H

#include "logging/log_format.h"

enum { LOG_JOURNAL_VALUE_MAX = 16 << 10 }; /* bytes of a value; what is longer is cut between letters */

/* Is this descriptor the journal's stream? systemd names it in JOURNAL_STREAM ("DEVICE:INODE") of what it starts, and a
 * child whose standard error leads elsewhere has the variable as well. */
bool log_journal_is(int fd);
/* Append the event as a datagram. */
void log_journal_put(buf *out, const log_event *e);

typedef enum { LOG_JOURNAL_SENT, LOG_JOURNAL_FULL, LOG_JOURNAL_AWAY } log_journal_result;
/* A socket for datagrams to the journal, -1: there is none. Close-on-exec. */
int log_journal_open(void);
/* Never waits. To $SHOAL_JOURNAL_SOCKET, or systemd's. FULL: it takes nothing now. AWAY: nobody is there, or the datagram
 * is too large. */
log_journal_result log_journal_send(int fd, const char *bytes, size_t n);

#endif
