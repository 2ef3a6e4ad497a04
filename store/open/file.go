package open

import (
	"fmt"
	"strings"
)

// File is the path of the file that a database URL names, for callers that must
// not make one; ok is false for a database on a server. A URL of no known form
// is an error, as for Store.
func File(text string) (path string, ok bool, err error) {
	switch scheme, rest, _ := strings.Cut(text, ":"); scheme {
	case "sqlite":
		if path, err = sqlitePath(rest); err != nil {
			return "", false, fmt.Errorf("database URL %q: %w", text, err)
		}
		return path, true, nil
	case "postgres", "postgresql":
		return "", false, nil
	}
	return "", false, refuse(text)
}
