package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// table is a table of the schema: its name, and how rows pass from one database to another.
type table struct {
	name string
	copy func(from, to *Tx, last []any) (next []any, digests [][sha256.Size]byte, err error)
}

// batch is how many rows are read at once.
const batch = 500

// of describes a table whose rows are values of T, in the order of its key.
func of[T any](name string, key ...string) table {
	kind := reflect.TypeFor[T]()
	names, fields := columns(kind)
	rest := fmt.Sprintf("WHERE (%[1]s) > %[2]s ORDER BY %[1]s LIMIT %[3]d", strings.Join(key, ", "), marks(len(key)), batch)
	return table{name, func(from, to *Tx, last []any) (next []any, digests [][sha256.Size]byte, err error) {
		if last == nil {
			for range key {
				last = append(last, "") // no key is empty
			}
		}
		rows, err := list[T](from, name, rest, last...)
		for i := range rows {
			v := reflect.ValueOf(&rows[i]).Elem()
			var text []byte
			for _, f := range fields {
				text = fmt.Appendf(text, "%#v\x00", reflect.Indirect(v.Field(f)))
			}
			digests = append(digests, sha256.Sum256(text))
		}
		if to != nil && err == nil {
			err = insert(to, name, rows...)
		}
		if err != nil || len(rows) < batch {
			return nil, digests, err
		}
		end := reflect.ValueOf(rows[len(rows)-1])
		for _, k := range key {
			next = append(next, end.Field(fields[slices.Index(names, k)]).Interface())
		}
		return next, digests, nil
	}}
}

type word struct {
	Word string `db:"word"`
	Run  string `db:"run"`
}

type tag struct {
	Run  string `db:"run"`
	Name string `db:"name"`
}

// tables lists all tables, each behind those that it refers to.
var tables = []table{
	of[Project]("projects", "id"),
	of[Series]("series", "id"),
	of[Run]("runs", "id"),
	of[Figure]("figures", "run", "name"),
	of[word]("words", "word", "run"),
	of[tag]("tags", "run", "name"),
	of[Token]("tokens", "id"),
	of[Share]("shares", "id"),
	of[Alert]("alerts", "id"),
	of[Hook]("hooks", "id"),
	of[Delivery]("deliveries", "id"),
	of[Entry]("audit", "id"),
	of[Rule]("retention", "project"),
	of[Unused]("unused_files", "hash"),
	of[upload]("uploads", "hash", "project"),
}

// Sum is what a table contains: the number of rows, and a hash that does not depend on their order.
type Sum struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	Hash  string `json:"hash"`
}

// Copy copies all rows to an empty database, whatever its kind, and compares both. If anything
// differs, nothing was copied.
func Copy(ctx context.Context, from, to *DB) (sums []Sum, err error) {
	err = from.View(ctx, func(src *Tx) error {
		return to.Change(ctx, func(dst *Tx) error {
			before, err := walk(dst, nil)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(before, func(s Sum) bool { return s.Rows > 0 }) {
				return errors.New("the target is not empty: copy into a new database")
			}
			if sums, err = walk(src, dst); err != nil {
				return err
			}
			copied, err := walk(dst, nil)
			if err == nil && !slices.Equal(sums, copied) {
				err = fmt.Errorf("rows differ after copying: %v, expected %v", copied, sums)
			}
			return err
		})
	})
	return sums, err
}

// Sums describes the content of all tables.
func (d *DB) Sums(ctx context.Context) (sums []Sum, err error) {
	err = d.View(ctx, func(t *Tx) error { sums, err = walk(t, nil); return err })
	return sums, err
}

// walk reads all rows and inserts them into another database, unless it is nil.
func walk(from, to *Tx) (sums []Sum, err error) {
	for _, t := range tables {
		s, total := Sum{Table: t.name}, [sha256.Size]byte{}
		for last := []any(nil); ; {
			next, digests, err := t.copy(from, to, last)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			for _, d := range digests {
				for i := range total {
					total[i] ^= d[i]
				}
			}
			if s.Rows += len(digests); next == nil {
				break
			}
			last = next
		}
		s.Hash = hex.EncodeToString(total[:])
		sums = append(sums, s)
	}
	return sums, nil
}
