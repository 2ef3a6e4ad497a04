// Package sqlstore implements store.Store on database/sql, once for SQLite and
// PostgreSQL: the statements are the common subset of both, with numbered
// parameters, and the few differences are in Dialect.
//
// A change is one transaction, which locks the campaign's row in the table
// leases before anything else. So the changes of one campaign happen one after
// another in both databases, numbers have no gaps, and a lease that is current
// at the check is current at the commit.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"

	"nocturne/store"
)

// versionTable is where the migrations that were applied are recorded.
const versionTable = "schema_version"

// Dialect is what differs between databases.
type Dialect struct {
	// Engine is a query for the name and version of the database.
	Engine string
	// Now is an expression for the present instant by the clock of the database.
	Now string
	// After returns an expression for the instant that many microseconds after
	// Now; parameter is the placeholder of an integer.
	After func(parameter string) string
	// Instant returns the parameter for a time.
	Instant func(time.Time) any
	// ForUpdate ends a select that locks its rows until the end of the transaction.
	ForUpdate string
	// Relaxed are the statements that let one transaction commit without waiting
	// for the disk. See Store.progress.
	Relaxed Relaxed
	// Snapshot are the options of a transaction that sees one instant.
	Snapshot *sql.TxOptions
	// MissingTable reports whether an error says that a table or column is missing.
	MissingTable func(error) bool
	// Explain turns an error of the driver into one that names the real cause and
	// what to do. It returns other errors as they are.
	Explain func(error) error
}

// Relaxed are statements around and within a transaction; empty ones are not run.
type Relaxed struct{ Before, Within, After string }

// Config is an open database.
type Config struct {
	Dialect Dialect
	// Write and Read are pools; they may be the same.
	Write, Read *sql.DB
	// Location is the path or URL, passwords masked.
	Location string
	Warnings []string
	// Migrations makes the provider of the schema's versions on Write.
	Migrations func(*sql.DB, ...goose.ProviderOption) (*goose.Provider, error)
	// LockSchema keeps other processes from migrating until release is called.
	LockSchema func(context.Context) (release func(), err error)
	// Close is called after the pools were closed.
	Close func() error
}

// Store implements store.Store.
type Store struct {
	Config
	dialect Dialect
}

var _ store.Store = (*Store)(nil)

// New returns the store over an open database, which it owns from now on.
func New(config Config) *Store {
	return &Store{Config: config, dialect: config.Dialect}
}

// Close closes the pools.
func (s *Store) Close() error {
	err := s.Read.Close()
	if s.Write != s.Read {
		err = errors.Join(err, s.Write.Close())
	}
	if s.Config.Close != nil {
		err = errors.Join(err, s.Config.Close())
	}
	return s.wrap("close the database", err)
}

// Migrate brings the schema to the newest version.
func (s *Store) Migrate(ctx context.Context) error {
	present, known, err := s.versions(ctx)
	if err != nil || present == known {
		return err // also for a role that may not change the schema
	}
	release, err := s.LockSchema(ctx)
	if err != nil {
		return s.wrap("migrate", err)
	}
	defer release()
	provider, err := s.provider()
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return s.wrap("migrate", err)
}

// Status describes the store.
func (s *Store) Status(ctx context.Context) (store.Status, error) {
	status := store.Status{Location: s.Location, Warnings: append([]string{}, s.Warnings...)}
	if err := s.Read.QueryRowContext(ctx, s.dialect.Engine).Scan(&status.Engine); err != nil {
		return status, s.wrap("read the version of the database", err)
	}
	present, known, err := s.versions(ctx)
	status.Version, status.Known = present, known
	if newer := (*store.SchemaError)(nil); errors.As(err, &newer) {
		err = nil // the status is how people find out
	}
	return status, err
}

// versions returns the schema version present and the one this program knows.
// A database without any has 0.
func (s *Store) versions(ctx context.Context) (present, known int64, err error) {
	provider, err := s.provider()
	if err != nil {
		return 0, 0, err
	}
	for _, source := range provider.ListSources() {
		known = max(known, source.Version)
	}
	// Not by the provider, which would create its table.
	err = s.Read.QueryRowContext(ctx, "select coalesce(max(version_id), 0) from "+versionTable+" where is_applied").Scan(&present)
	if err != nil && !s.dialect.MissingTable(err) {
		return 0, known, s.wrap("read the schema version", err)
	}
	if present > known {
		return present, known, &store.SchemaError{Present: present, Known: known}
	}
	return present, known, nil
}

func (s *Store) provider() (*goose.Provider, error) {
	provider, err := s.Migrations(s.Write,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
	)
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return provider, nil
}

// wrap says what was being done and names the real cause of an error.
func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if s.dialect.MissingTable(err) {
		err = fmt.Errorf("%w (%w)", store.ErrNotMigrated, err)
	}
	return fmt.Errorf("%s: %w", what, s.dialect.Explain(err))
}
