package testpg_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"nocturne/internal/testpg"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

func TestDatabasesAreApart(t *testing.T) {
	count := func(url string) (tables int) {
		t.Helper()
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // nothing is lost with the connection
		if err := db.QueryRow("select count(*) from pg_tables where schemaname = 'public'").Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("create table only_here (id int)"); err != nil {
			t.Fatal(err)
		}
		return tables
	}
	if first, second := count(testpg.URL(t)), count(testpg.URL(t)); first == 0 || first != second {
		t.Errorf("migrated databases have %d and %d tables, want the same, not 0", first, second)
	}
	if tables := count(testpg.Empty(t)); tables != 0 {
		t.Errorf("an empty database has %d tables", tables)
	}
}

// TestKilledBinaryLeavesNoServer runs this binary again, and kills it.
func TestKilledBinaryLeavesNoServer(t *testing.T) {
	if os.Getenv(killMe) != "" {
		fmt.Println(testpg.Empty(t))
		select {} // until killed
	}
	binary := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledBinaryLeavesNoServer$")
	binary.Env = append(os.Environ(), killMe+"=1")
	output, err := binary.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := binary.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	database, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	folder := database.Query().Get("host")
	if err := binary.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := binary.Wait(); err == nil {
		t.Fatal("the binary was not killed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db, err := sql.Open("pgx", database.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is lost with the connection
	for db.PingContext(ctx) == nil {
		// The kernel has told the server to stop; it is doing so.
	}
	if ctx.Err() != nil {
		t.Error("the server goes on")
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Error(err)
	}
}

const killMe = "NOCTURNE_TESTPG_KILL_ME"
