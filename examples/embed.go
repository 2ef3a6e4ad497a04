// Package examples holds the campaign files that the program brings along.
package examples

import _ "embed"

// Demo is the campaign of `nocturne demo`.
//
//go:embed demo.yaml
var Demo []byte
