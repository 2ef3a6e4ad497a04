package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"nocturne/store"
)

// The codes are those of the PostgreSQL manual, appendix A.

// advice is what to do about an error of the server, by its code or, with two
// characters, by the class of the code.
var advice = map[string]string{
	"28P01": "check the user, and the password in ~/.pgpass or PGPASSWORD",
	"28000": "the server does not let this user in from here: check the user, and pg_hba.conf on the server",
	"3D000": "make the database first: createdb -O USER DATABASE",
	"42501": "the user needs the right to make tables: let it own the database, or migrate as a user who does",
	"25006": "the server is a read-only standby: name the primary server",
	"53100": "the disk of the server is full: make room",
	"53300": "the server has no connection left: raise max_connections, or close other clients",
	"57P01": "the server is shutting down",
	"57P02": "the server crashed",
	"57P03": "the server is starting or stopping",
	"08":    "the connection was lost",
}

// unavailable are the codes after which the same call may succeed later.
var unavailable = map[string]bool{"53300": true, "57P01": true, "57P02": true, "57P03": true, "08": true}

// explain names the real cause of an error of PostgreSQL and what to do about it.
func explain(err error) error {
	if failure := (*pgconn.PgError)(nil); errors.As(err, &failure) {
		for _, code := range []string{failure.Code, failure.Code[:min(2, len(failure.Code))]} {
			if hint, known := advice[code]; known {
				return explained(unavailable[code], hint, err)
			}
		}
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	connect, network, dns := (*pgconn.ConnectError)(nil), net.Error(nil), (*net.DNSError)(nil)
	switch {
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return explained(false, "the server has no TLS: add sslmode=disable to the URL if the network can be trusted", err)
	case errors.As(err, &dns):
		return explained(true, "no such host: check the host of the URL", err)
	case errors.As(err, &connect):
		return explained(true, "check that the server runs, and the host and port of the URL", err)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pgconn.ErrConnClosed):
		return explained(true, "the connection was lost", err)
	}
	return err
}

func explained(transient bool, hint string, err error) error {
	if transient {
		return fmt.Errorf("%w: %s (%w)", store.ErrUnavailable, hint, err)
	}
	return fmt.Errorf("%s (%w)", hint, err)
}

// missingTable reports whether a statement named a table or column that the
// database does not have.
func missingTable(err error) bool {
	failure := (*pgconn.PgError)(nil)
	return errors.As(err, &failure) && (failure.Code == "42P01" || failure.Code == "42703")
}
