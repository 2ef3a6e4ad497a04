// Package migrations holds the schema of the store as numbered SQL files, one
// folder for each dialect. A version number stands for the same tables, columns
// and views in both, so that "schema version 2" means one thing.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// SQLite returns the migrations for SQLite, in the root of the file system.
func SQLite() fs.FS { return folder("sqlite") }

// Postgres returns the migrations for PostgreSQL.
func Postgres() fs.FS { return folder("postgres") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(fmt.Sprintf("migrations: %v", err)) // the name is one of the two above
	}
	return sub
}
