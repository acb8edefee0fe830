// Package compress answers what would make a model smaller or faster, and what that would cost: it runs
// performance profiles (package speed), loss profiles (loss), plans (choose) and comparisons over a
// study's file, writes each result as it is found, and goes on where an earlier run stopped.
package compress
