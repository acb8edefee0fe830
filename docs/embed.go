// Package docs carries the documents that the program prints.
package docs

import _ "embed"

// ProfileSchema is the JSON Schema (draft 2020-12) of the JSON profile.
//
//go:embed profile.schema.json
var ProfileSchema []byte
