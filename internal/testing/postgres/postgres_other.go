//go:build !unix

// Package postgres runs a PostgreSQL for tests, which this system has no programs for.
package postgres

import "testing"

// Start skips the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	t.Skip("PostgreSQL for tests needs a Unix")
	return ""
}
