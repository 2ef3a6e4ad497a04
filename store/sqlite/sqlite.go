// Package sqlite keeps the store in a SQLite file: the default, for one machine.
//
// The file is in write-ahead mode. One connection writes, several read beside
// it, in this and in other processes. A change is on disk (synchronous FULL:
// NORMAL may lose the last changes when the power fails) when a call returns;
// events and stage reports survive the end of the process and reach the disk
// with the next change. Leases go by the clock of this host, which is the only
// host: files on network file systems are refused, since locks and shared
// memory do not work there.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"nocturne/migrations"
	"nocturne/store"
	"nocturne/store/internal/sqlstore"
)

const (
	// busyTimeout is how long a call waits for another process's change. Changes
	// take milliseconds, but waiting is not fair: under load one process may be
	// passed over often.
	busyTimeout = 30 * time.Second
	// readers is how many queries run beside each other and the writer.
	readers = 4
)

// Open opens the database in the file at path, and makes the file (mode 0600)
// and its folders (0700) when there are none. Call Migrate before using it.
func Open(ctx context.Context, path string) (store.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("the database file: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // its folder counts
	}
	dialect := dialectOf(path)
	opened, err := open(ctx, path, dialect)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", dialect.Explain(err))
	}
	return opened, nil
}

func open(ctx context.Context, path string, dialect sqlstore.Dialect) (store.Store, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder %s for the database: %w", folder, err)
	}
	warnings, err := checkFileSystem(folder)
	if err != nil {
		return nil, err
	}
	release, err := lockFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := makeFile(path); err != nil {
		return nil, err
	}
	write, err := openPool(url.Values{"_txlock": {"immediate"}, "_pragma": {"synchronous(full)", "foreign_keys(on)"}}, path)
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := useWriteAheadLog(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read, err := openPool(url.Values{"_query_only": {"on"}}, path)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return sqlstore.New(sqlstore.Config{
		Dialect:  dialect,
		Write:    write,
		Read:     read,
		Location: path,
		Warnings: warnings,
		Migrations: func(db *sql.DB, options ...goose.ProviderOption) (*goose.Provider, error) {
			return goose.NewProvider(goose.DialectSQLite3, db, migrations.SQLite(), options...)
		},
		LockSchema: func(ctx context.Context) (func(), error) { return lockFolder(ctx, folder) },
	}), nil
}

// makeFile creates the file if there is none. SQLite would give it the mode
// that the umask leaves; its log and shared memory take the mode of the file.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the database file: %w", err)
	}
	return file.Close()
}

func openPool(parameters url.Values, path string) (*sql.DB, error) {
	parameters.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	parameters.Set("_error_rc", "true")
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: parameters.Encode()}
	return sql.Open("sqlite", name.String())
}

// useWriteAheadLog sets the mode, which stays with the file, and so also finds
// out whether the file is a database that can be written.
func useWriteAheadLog(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file stays in journal mode %q: its file system has no shared memory for a write-ahead log; name a file on a local disk", mode)
	}
	return nil
}

func dialectOf(path string) sqlstore.Dialect {
	const now = "cast(unixepoch('subsec') * 1000000 as integer)"
	return sqlstore.Dialect{
		Engine:       "select 'sqlite ' || sqlite_version()",
		Now:          now,
		After:        func(parameter string) string { return now + " + " + parameter },
		Instant:      func(t time.Time) any { return t.UnixMicro() },
		Relaxed:      sqlstore.Relaxed{Before: "pragma synchronous = normal", After: "pragma synchronous = full"},
		Snapshot:     &sql.TxOptions{ReadOnly: true},
		MissingTable: func(err error) bool { return missingTable(err) },
		Explain:      func(err error) error { return explain(path, err) },
	}
}
