// Package testpg gives tests databases on a private PostgreSQL cluster.
//
// A test binary that needs one calls Run in TestMain. The cluster starts with
// the first database that is asked for, listens on a unix socket in a temporary
// folder only, and is stopped and removed when the tests are over, passed or
// not. When the test binary is killed, the kernel stops the server, and the next
// run removes the folder. Root is no obstacle: the server then runs as the user
// postgres or nobody.
package testpg

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"nocturne/store/postgres"
)

// shared is the cluster of this test binary.
var shared lazyCluster

// lazyCluster starts a cluster, and makes a migrated template in it, once each.
type lazyCluster struct {
	start    sync.Once
	migrate  sync.Once
	cluster  *cluster
	err      error
	migrated error
	made     atomic.Int64
}

// Run runs the tests, and then stops and removes the cluster if they started
// one. It returns the exit status: os.Exit(testpg.Run(m)).
func Run(m *testing.M) int {
	status := m.Run()
	if shared.cluster == nil {
		return status
	}
	if err := shared.cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the PostgreSQL cluster of the tests:", err)
		return max(status, 1)
	}
	return status
}

// URL returns the URL of a new database with the newest schema. It is dropped
// with the cluster.
func URL(t testing.TB) string {
	t.Helper()
	cluster := shared.get(t)
	shared.migrate.Do(func() { shared.migrated = migrateTemplate(t.Context(), cluster) })
	if shared.migrated != nil {
		t.Fatalf("make the template database: %v", shared.migrated)
	}
	return shared.create(t, " template "+template+" strategy file_copy")
}

// Empty returns the URL of a new database without a schema.
func Empty(t testing.TB) string {
	t.Helper()
	shared.get(t)
	return shared.create(t, "")
}

// template is the database that the others are cloned from.
const template = "template_migrated"

func (l *lazyCluster) get(t testing.TB) *cluster {
	t.Helper()
	l.start.Do(func() { l.cluster, l.err = startCluster() })
	if l.err != nil {
		t.Fatalf("start a PostgreSQL cluster for the tests: %v", l.err)
	}
	return l.cluster
}

func (l *lazyCluster) create(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", l.made.Add(1))
	if err := l.cluster.execute(t.Context(), "create database "+name+options); err != nil {
		t.Fatalf("make a database for the test: %v", err)
	}
	return l.cluster.url(name)
}

func migrateTemplate(ctx context.Context, c *cluster) error {
	if err := c.execute(ctx, "create database "+template); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, c.url(template))
	if err != nil {
		return err
	}
	err = store.Migrate(ctx)
	if closed := store.Close(); err == nil {
		err = closed // a template with a connection cannot be cloned
	}
	return err
}

// url returns the URL of a database on the cluster's socket.
func (c *cluster) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: url.Values{"host": {c.folder}}.Encode()}
	return u.String()
}

// execute runs a statement outside of any test's database.
func (c *cluster) execute(ctx context.Context, statement string) error {
	db, err := sql.Open("pgx", c.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is lost with the connection
	_, err = db.ExecContext(ctx, statement)
	return err
}
