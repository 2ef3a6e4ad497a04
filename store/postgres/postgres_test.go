package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"nocturne/internal/testpg"
	"nocturne/store"
	"nocturne/store/postgres"
	"nocturne/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Worker()
	os.Exit(testpg.Run(m))
}

func TestConformance(t *testing.T) { storetest.Run(t, testpg.Empty) }

func Benchmark(b *testing.B) { storetest.Benchmark(b, testpg.URL) }

const password = "hunter2-secret"

// change returns a database's URL with other parts.
func change(t *testing.T, database string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	change(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

// refusingPort returns a port of this host on which nobody listens.
func refusingPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().(*net.TCPAddr).Port
}

func TestF38_PasswordsAreMasked(t *testing.T) {
	database := testpg.URL(t)
	withPassword := change(t, database, func(u *url.URL, _ url.Values) { u.User = url.UserPassword(u.User.Username(), password) })
	s, err := postgres.Open(t.Context(), withPassword)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	status, err := s.Status(t.Context())
	if err != nil || strings.Contains(fmt.Sprint(status), password) || !strings.HasPrefix(status.Location, "postgres://nocturne:xxxxx@") {
		t.Errorf("status %+v, %v: want the password masked", status, err)
	}
	if len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "PGPASSWORD") {
		t.Errorf("warnings %q: want one of the password in the URL", status.Warnings)
	}
	port := refusingPort(t)
	for _, text := range []string{
		fmt.Sprintf("postgres://u:%s@127.0.0.1:%d/db", password, port),
		fmt.Sprintf("postgres://127.0.0.1:%d/db?user=u&password=%s", port, password),
		fmt.Sprintf("postgres://u:%s@127.0.0.1:port/db", password),
		fmt.Sprintf("postgres://u:%s@127.0.0.1/db?connect_timeout=soon", password),
		fmt.Sprintf("postgres://u:%s/@127.0.0.1/db", password),
	} {
		if _, err := postgres.Open(t.Context(), text); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("open %s: %v, want an error without the password", text, err)
		}
	}
}

func TestConnectionErrorsSayWhatToDo(t *testing.T) {
	database := testpg.Empty(t)
	tests := map[string]struct {
		url       string
		want      string
		transient bool
	}{
		"refused": {fmt.Sprintf("postgres://u@127.0.0.1:%d/db", refusingPort(t)), "check that the server runs", true},
		"no socket": {change(t, database, func(_ *url.URL, query url.Values) { query.Set("host", "/nowhere") }),
			"check that the server runs", true},
		"no database": {change(t, database, func(u *url.URL, _ url.Values) { u.Path = "/nowhere" }), "createdb", false},
		"no user":     {change(t, database, func(u *url.URL, _ url.Values) { u.User = url.User("nobody") }), "check the user", false},
		"no host":     {"postgres://u@nowhere.invalid/db", "check the host", true},
	}
	for name, test := range tests {
		_, err := postgres.Open(t.Context(), test.url)
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, store.ErrUnavailable) != test.transient {
			t.Errorf("%s: %v\nwant %q, unavailable %v", name, err, test.want, test.transient)
		}
	}
}

// TestLostConnections ends the connections as a restart of the server does: one
// call may fail as unavailable, the next ones work.
func TestLostConnections(t *testing.T) {
	database := testpg.URL(t)
	s, err := postgres.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	if _, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close() //nolint:errcheck // the test is over
	var ended int
	if err := admin.QueryRow(`select count(pg_terminate_backend(pid)) from pg_stat_activity
		where application_name = 'nocturne' and datname = current_database()`).Scan(&ended); err != nil || ended == 0 {
		t.Fatalf("ended %d connections, %v", ended, err)
	}
	for range ended {
		if _, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a lost connection: %v, want ErrUnavailable", err)
		}
	}
	if _, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil {
		t.Errorf("after the lost connections: %v", err)
	}
}

// TestMissingRights opens the database as a user who may not make tables.
func TestMissingRights(t *testing.T) {
	database := testpg.Empty(t)
	admin, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close() //nolint:errcheck // the test is over
	if _, err := admin.Exec("create role guest login"); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), change(t, database, func(u *url.URL, _ url.Values) { u.User = url.User("guest") }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "let it own the database") {
		t.Errorf("migrate without rights: %v, want to know what to do", err)
	}
}
