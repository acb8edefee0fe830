// Package report turns a profile into text and files: terminal tables, Markdown,
// CSV, JSON, YAML, workbooks and the saved profile file.
//
// Every output is made from the same rows and columns, so that a figure reads
// the same everywhere; only units and digits differ between what is for people
// and what is for machines. Columns are the quantities of the profile and a few texts;
// what is special to the table about one is a line of a small map. Codes become words
// in package words alone. Names come from model files and are not trusted:
// control characters are shown as escapes, and cells that a spreadsheet would
// run as formulas are neutralised (package text).
//
// The package reads profile only; it measures nothing.
package report
