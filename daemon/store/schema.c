/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in the file. A step that was shipped is never changed: what is to be otherwise is another step.
 *
 * Times are milliseconds since 1970. What is kept of a value is JSON text; of a task's input or cause that is no JSON, a blob of MessagePack.
 */
#include <stddef.h>

#include "daemon/store/database.h"

const char *const tr_schema_steps[] = {
        "CREATE TABLE entities ("
        "  component TEXT NOT NULL,"
        "  id TEXT NOT NULL,"
        "  version INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  updated INTEGER NOT NULL,"
        "  body TEXT NOT NULL,"
        "  PRIMARY KEY (component, id)"
        ") STRICT;"
        "CREATE TABLE tasks ("
        "  seq INTEGER PRIMARY KEY,"
        "  id TEXT NOT NULL UNIQUE,"
        "  component TEXT NOT NULL,"
        "  operation TEXT NOT NULL,"
        "  state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'parked')),"
        "  input ANY NOT NULL,"
        "  key TEXT,"
        "  entity TEXT,"
        "  due INTEGER NOT NULL,"
        "  expires INTEGER,"
        "  delayed INTEGER NOT NULL,"
        "  runs INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  updated INTEGER NOT NULL,"
        "  cause ANY,"
        "  trace TEXT,"
        "  depth INTEGER NOT NULL,"
        "  uid INTEGER NOT NULL,"
        "  gid INTEGER NOT NULL,"
        "  pid INTEGER NOT NULL"
        ") STRICT;"
        "CREATE INDEX tasks_due ON tasks (component, delayed, due, seq) WHERE state = 'waiting';"
        "CREATE INDEX tasks_key ON tasks (component, operation, key) WHERE state = 'waiting' AND key IS NOT NULL;"
        "CREATE TABLE names ("
        "  component TEXT NOT NULL,"
        "  instance TEXT NOT NULL,"
        "  daemon TEXT NOT NULL,"
        "  PRIMARY KEY (component, instance)"
        ") STRICT, WITHOUT ROWID;",
        NULL,
};
