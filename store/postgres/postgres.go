// Package postgres keeps the store in a PostgreSQL database, which several hosts
// share. It was tried with version 15.
//
// Leases go by the clock of the database. A change is committed as durably as
// the server is set up to (synchronous_commit); events and stage reports do not
// wait for the disk, and reach it with the next change.
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"nocturne/migrations"
	"nocturne/store"
	"nocturne/store/internal/sqlstore"
)

// connectTimeout is how long a server may take to answer when the URL does not
// say (connect_timeout).
const connectTimeout = 10 * time.Second

// Another process that migrates is asked every lockProbe seconds whether it is
// done, at most lockProbes times.
const (
	lockProbe  = 1
	lockProbes = 300
)

// Open connects to the database at a postgres:// URL. What the URL leaves out
// comes from the environment (PGUSER, PGPASSWORD ...), ~/.pgpass and the service
// file, as with psql. Call Migrate before using it.
func Open(ctx context.Context, url string) (store.Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The error holds the URL: it is masked, and not wrapped.
		return nil, fmt.Errorf("open the database: %s", store.MaskURL(err.Error()))
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "nocturne"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", store.MaskURL(url), explain(err))
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database %s: %w", store.MaskURL(url), explain(err))
	}
	db := stdlib.OpenDBFromPool(pool)
	return sqlstore.New(sqlstore.Config{
		Dialect:    dialect(),
		Write:      db,
		Read:       db,
		Location:   store.MaskURL(url),
		Warnings:   warnings(url),
		Migrations: provider,
		LockSchema: func(context.Context) (func(), error) { return func() {}, nil }, // the provider's locker does
		Close:      func() error { pool.Close(); return nil },
	}), nil
}

func warnings(url string) []string {
	if store.HasPassword(url) {
		return []string{"the database URL holds the password, which whoever lists the processes can read: use ~/.pgpass or PGPASSWORD"}
	}
	return nil
}

func provider(db *sql.DB, options ...goose.ProviderOption) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockProbe, lockProbes), lock.WithUnlockTimeout(lockProbe, lockProbes))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, migrations.Postgres(), append(options, goose.WithSessionLocker(locker))...)
}

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Engine: "select 'postgresql ' || current_setting('server_version')",
		Now:    "now()",
		After: func(parameter string) string {
			return "now() + cast(" + parameter + " as bigint) * interval '1 microsecond'"
		},
		Instant:      func(t time.Time) any { return t.UTC().Truncate(time.Microsecond) },
		ForUpdate:    " for update",
		Relaxed:      sqlstore.Relaxed{Within: "set local synchronous_commit to off"},
		Snapshot:     &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		MissingTable: missingTable,
		Explain:      explain,
	}
}
