// Package compress finds out which changes make a model smaller or faster, and what they cost. It
// runs performance profiles (package speed), loss profiles (loss), plans (choose) and benchmarks
// on a study file. Each result is written as soon as it is found; a later run resumes there.
package compress
