package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// template is the session that is copied.
const template = "template"

// name is the id of the nth session. The sessions of one agent have adjacent ids.
func name(n int) string { return fmt.Sprintf("agent-%05d/run-%08d", n/1000, n) }

// copied are the tables with a session's rows, and the columns that differ in copies. A copy's segment and
// incarnation are the same number.
var copied = []struct {
	table   string
	changed map[string]string
}{
	{"contextd_sessions", map[string]string{
		"id":          `convert_to(format('agent-%s/run-%s', lpad((n / 1000)::text, 5, '0'), lpad(n::text, 8, '0')), 'UTF8')`,
		"incarnation": "n + $1",
	}},
	{"contextd_shares", map[string]string{"incarnation": "n + $1", "segment": "n + $1"}},
	{"contextd_events", map[string]string{"segment": "n + $1"}},
	{"contextd_artifacts", map[string]string{"segment": "n + $1"}},
}

// above is larger than the incarnations of all sessions that were created before.
const above = 1000

// fill copies the rows of the template, in the server. That is possible because rows refer to their session
// only by its number. The result is what that many clients would have written.
func fill(ctx context.Context, conn *pgx.Conn, sessions int) error {
	const step = 20_000 // sessions per statement
	for first := 0; first < sessions; first += step {
		for _, t := range copied {
			rows, _ := conn.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, t.table)
			columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			values := make([]string, len(columns))
			for i, column := range columns {
				if values[i] = t.changed[column]; values[i] == "" {
					values[i] = "t." + column
				}
			}
			sql := fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM generate_series($2::bigint, $3::bigint) n, %s t WHERE t.%s = (SELECT incarnation FROM contextd_sessions WHERE id = '%s')`,
				t.table, strings.Join(columns, ", "), strings.Join(values, ", "), t.table, keyOf(columns), template)
			if _, err := conn.Exec(ctx, sql, above, first, min(first+step, sessions)-1); err != nil {
				return fmt.Errorf("%s: %w", t.table, err)
			}
		}
	}
	_, err := conn.Exec(ctx, fmt.Sprintf(`SELECT setval('contextd_incarnations', %d)`, above+sessions))
	if err == nil {
		_, err = conn.Exec(ctx, `ANALYZE`)
	}
	return err
}

func keyOf(columns []string) string {
	for _, column := range columns {
		if column == "incarnation" {
			return column
		}
	}
	return "segment"
}

// sizes prints the sizes of the tables.
func sizes(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, `SELECT relname, reltuples::bigint, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relname LIKE 'contextd\_%' AND relnamespace = current_schema()::regnamespace ORDER BY pg_total_relation_size(oid) DESC`)
	var table string
	var n, bytes, indexes int64
	fmt.Println("| table | rows | MB | MB of indexes |\n| --- | --- | --- | --- |")
	_, err := pgx.ForEachRow(rows, []any{&table, &n, &bytes, &indexes}, func() error {
		_, err := fmt.Printf("| %s | %d | %d | %d |\n", table, max(n, 0), bytes>>20, indexes>>20)
		return err
	})
	fmt.Println()
	return err
}
