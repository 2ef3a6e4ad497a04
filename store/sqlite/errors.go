package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	library "modernc.org/sqlite/lib"

	"nocturne/store"
)

// primaryCode are the bits of a result code that name its kind.
const primaryCode = 0xff

// explain names the real cause of an error of SQLite and what to do about it.
func explain(path string, err error) error {
	failure := (*sqlite.Error)(nil)
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & primaryCode {
	case library.SQLITE_BUSY, library.SQLITE_LOCKED:
		return fmt.Errorf("%w: %s is locked by another process, after %v of waiting: end that process or its transaction (%w)",
			store.ErrUnavailable, path, busyTimeout, err)
	case library.SQLITE_FULL:
		return fmt.Errorf("the disk with %s is full: make room (%w)", path, err)
	case library.SQLITE_READONLY:
		return fmt.Errorf("%s cannot be written: check the owner and the mode of the file and of its folder (%w)", path, err)
	case library.SQLITE_CANTOPEN, library.SQLITE_PERM, library.SQLITE_AUTH:
		return fmt.Errorf("%s cannot be opened: check that it is a file and that this user may read and write it and its folder (%w)", path, err)
	case library.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a SQLite database: name another file (%w)", path, err)
	case library.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: keep a copy of it and of its -wal file, then restore a backup or try `sqlite3 FILE .recover` (%w)", path, err)
	case library.SQLITE_IOERR:
		return fmt.Errorf("%s could not be read or written: check the disk (%w)", path, err)
	}
	return err
}

// missingTable reports whether a statement named a table or column that the
// database does not have. SQLite has no code of its own for that.
func missingTable(err error) bool {
	failure := (*sqlite.Error)(nil)
	return errors.As(err, &failure) && failure.Code() == library.SQLITE_ERROR &&
		(strings.Contains(failure.Error(), "no such table") || strings.Contains(failure.Error(), "no such column"))
}
