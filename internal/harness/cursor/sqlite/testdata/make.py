"""Makes the databases of the tests anew, with SQLite itself: python3 make.py"""

import os
import shutil
import sqlite3
import subprocess

os.chdir(os.path.dirname(os.path.abspath(__file__)))
PLAIN = "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"


def fill(db, first=0, last=24):
    for i in range(first, last):
        value = '{"n":%d,"text":"%s"}' % (i, "a\u00e9\U0001f600" * (i * i % 150))
        db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", ("bubbleId:c:%03d" % i, value))
        db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", ("other:%d" % i, "x" * i))


def make(name, *before, schema=PLAIN, rows=True, after=()):
    if os.path.exists(name):
        os.remove(name)
    db = sqlite3.connect(name, isolation_level=None)
    for statement in before:
        db.execute(statement)
    db.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    db.execute(schema)
    if rows:
        db.execute("BEGIN")
        fill(db)
        db.execute("COMMIT")
    for statement in after:
        db.execute(statement)
    db.close()


make("page-512.plain.db", "PRAGMA page_size=512")
make("page-16384.plain.db", "PRAGMA page_size=16384")
make("utf16le.plain.db", "PRAGMA encoding='UTF-16le'", "PRAGMA page_size=1024")
make("utf16be.plain.db", "PRAGMA encoding='UTF-16be'", "PRAGMA page_size=1024")
make("vacuum.plain.db", "PRAGMA auto_vacuum=FULL", "PRAGMA page_size=512")
make("quoted.plain.db", "PRAGMA page_size=1024", schema='CREATE TABLE "cursorDiskKV" ("key" TEXT PRIMARY KEY, [value] BLOB)')
make("freelist.plain.db", "PRAGMA page_size=512", after=[
    "INSERT INTO cursorDiskKV SELECT key || ':gone', value FROM cursorDiskKV WHERE key LIKE 'bubble%'",
    "DELETE FROM cursorDiskKV WHERE key LIKE '%:gone'",
])

# Bytes of each page that are an extension's: only the shell of SQLite reserves them.
name = "reserved.plain.db"
if os.path.exists(name):
    os.remove(name)
subprocess.run(["sqlite3", name], input=".filectrl reserve_bytes 32\nPRAGMA page_size=512;\nVACUUM;\n" + PLAIN + ";\n", text=True, check=True)
db = sqlite3.connect(name, isolation_level=None)
db.execute("BEGIN")
fill(db)
db.execute("COMMIT")
db.close()

# Half of the rows are in the write-ahead log alone, and some were changed there.
for name in ("wal.plain.db", "wal.plain.db-wal"):
    if os.path.exists(name):
        os.remove(name)
db = sqlite3.connect("live.db", isolation_level=None)
for statement in ("PRAGMA page_size=512", "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", PLAIN):
    db.execute(statement)
fill(db, 0, 12)
db.execute("UPDATE cursorDiskKV SET value='{}' WHERE key='bubbleId:c:003'")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
fill(db, 3, 4)
db.execute("DELETE FROM cursorDiskKV WHERE key > 'bubbleId:c:003' AND key < 'bubbleId:d'")
fill(db, 4, 24)
shutil.copy("live.db", "wal.plain.db")
shutil.copy("live.db-wal", "wal.plain.db-wal")
db.close()
os.remove("live.db")

# What a database may hold in the place of the table.
make("view.refused.db", "PRAGMA page_size=512", rows=False, schema="""CREATE VIEW cursorDiskKV AS
    SELECT 'bubbleId:a:1' AS key, zeroblob(900000000) AS value, 1 AS rowid""")
make("recursive.refused.db", "PRAGMA page_size=512", rows=False, schema="""CREATE VIEW cursorDiskKV AS
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT 'bubbleId:a:' || i AS key, i AS value, i AS rowid FROM n""")
make("generated.refused.db", "PRAGMA page_size=512", rows=False, schema="""CREATE TABLE cursorDiskKV
    (key TEXT, value BLOB GENERATED ALWAYS AS (zeroblob(900000000)))""",
     after=["INSERT INTO cursorDiskKV (key) VALUES ('bubbleId:a:1')"])
make("virtual.refused.db", "PRAGMA page_size=512", rows=False, schema="CREATE VIRTUAL TABLE cursorDiskKV USING fts5(key, value)")
make("rowless.refused.db", "PRAGMA page_size=512",
     schema="CREATE TABLE cursorDiskKV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
make("turned.refused.db", "PRAGMA page_size=512", schema="CREATE TABLE cursorDiskKV (value TEXT, key BLOB)")
make("other.refused.db", "PRAGMA page_size=512", rows=False, schema="CREATE TABLE other (key TEXT, value BLOB)")
make("crush.refused.db", "PRAGMA page_size=512", "CREATE TABLE sessions (id TEXT)", rows=False, schema="CREATE TABLE messages (id TEXT, parts TEXT)")
make("opencode.refused.db", "PRAGMA page_size=512", "CREATE TABLE session (id TEXT)", "CREATE TABLE message (id TEXT)", rows=False, schema="CREATE TABLE part (id TEXT)")
