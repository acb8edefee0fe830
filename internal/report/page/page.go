package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/opmeter/opmeter/internal/jsonx"
	"github.com/opmeter/opmeter/profile"
)

//go:embed dist/page.js
var script string

//go:embed dist/page.css
var style string

// maxSamples is how many samples a page holds one by one; beyond it layers are
// shown by distributions. At this number the samples take some 4 MB and the page
// draws them all without delay.
const maxSamples = 1_000_000

// document is the JSON part; web/src/lib/data.ts has its other side.
type document struct {
	Profile       *profile.Profile `json:"profile"`
	Columns       []column         `json:"columns"`
	Version       string           `json:"version,omitzero"`
	Sampled       *sampled         `json:"sampled,omitzero"`
	Distributions []distribution   `json:"distributions,omitzero"`
}

// Write writes the page. version is that of the program.
func Write(w io.Writer, p *profile.Profile, version string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	d := &document{Version: version}
	c := split(d, p, maxSamples)
	text, err := jsonx.Marshal(d)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	sum := sha256.Sum256([]byte(script))
	fmt.Fprintf(out, head, base64.StdEncoding.EncodeToString(sum[:]), html.EscapeString(title(p.Model.Name)), style)
	if err := part(out, "document", func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if err := part(out, "columns", c.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "<script>%s</script>\n</body>\n</html>\n", script)
	return out.Flush()
}

// The policy names the one script by its hash and allows no network. Names from
// models stand in the title only, escaped, and in the data, which are base64.
const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s · opmeter</title>
<style>%s</style>
</head>
<body>
<div id="app"><p class="start">Reading the profile …</p><noscript><p class="start">This page needs JavaScript.</p></noscript></div>
`

// title shortens a name and takes out what is not seen: control characters, line
// ends, and what turns the direction of writing.
func title(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if r := []rune(s); len(r) > 100 {
		s = string(r[:99]) + "…"
	}
	return s
}
