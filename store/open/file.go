package open

import (
	"fmt"
	"strings"
)

// File is the path of the file that a database URL names, for callers that must
// not make one; ok is false for a database on a server.
func File(text string) (path string, ok bool, err error) {
	scheme, rest, _ := strings.Cut(text, ":")
	if scheme != "sqlite" {
		return "", false, nil
	}
	if path, err = sqlitePath(rest); err != nil {
		return "", false, fmt.Errorf("database URL %q: %w", text, err)
	}
	return path, true, nil
}
