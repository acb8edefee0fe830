//go:build !unix

// Package postgres runs a PostgreSQL for tests, which this system has no programs for.
package postgres

import (
	"errors"
	"testing"
)

// ErrMissing says that PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL for tests needs a Unix")

// Server is a PostgreSQL with a folder of its own.
type Server struct{}

// New returns [ErrMissing].
func New() (*Server, error) { return nil, ErrMissing }

// URL is the address of the database.
func (s *Server) URL() string { return "" }

// Start starts the server.
func (s *Server) Start() error { return ErrMissing }

// Kill ends the server at once.
func (s *Server) Kill() {}

// Close ends the server.
func (s *Server) Close() error { return nil }

// Start skips the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	t.Skip(ErrMissing)
	return ""
}
