package main

import (
	"errors"
	"os"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// TestMain makes the test binary the program, for the processes that it starts.
func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" || len(os.Args) > 1 && os.Args[1] == "server" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestKill kills processes of a server with external engines, and finds every result.
func TestKill(t *testing.T) {
	t.Parallel()
	err := survive(0, 10, 40, true, t.Output())
	if errors.Is(err, postgres.ErrMissing) {
		material.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
}
