// Package sources holds the test that all sources of figures describe a model alike.
// It has no code of its own.
package sources
