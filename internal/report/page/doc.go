// Package page writes a profile, a comparison of profiles or a study as one HTML file that needs
// no network and no server. The front end is web/; its built files are embedded here, so that
// building opmeter needs Go only.
//
// The data follow the markup as two parts, gzipped and in base64: "document", a
// JSON text with the profile, and "columns", its long lists of figures as
// little-endian binary, to which the document's list of columns points. Every part
// stands in script elements of bounded size that the browser does not run, because
// a JavaScript string is bounded and so that the text can be freed piece by piece.
// docs/reference/page.md describes the whole.
//
// It imports profile with its comparison, study, and packages of internal/base, and no other
// report.
package page
