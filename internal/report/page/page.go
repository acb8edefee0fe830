package page

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

//go:embed dist/page.js
var script string

//go:embed dist/page.css
var style string

// maxSamples is how many samples a page holds one by one; beyond it layers are
// shown by distributions. At this number the samples take some 4 MB and the page
// draws them all without delay.
const maxSamples = 1_000_000

// document is the JSON part; web/src/data/load.ts has its other side.
type document struct {
	Profile *profile.Profile `json:"profile"`
	// Quantities describes all figures of the profile, known and foreign: the page's
	// columns are made of them.
	Quantities    []profile.Quantity `json:"quantities"`
	Columns       []columnar.Ref     `json:"columns"`
	Version       string             `json:"version,omitzero"`
	Answers       Answers            `json:"answers"`
	Sampled       *sampled           `json:"sampled,omitzero"`
	Distributions []distribution     `json:"distributions,omitzero"`
}

// Answers are short texts of the summary, the same as in other reports.
type Answers struct {
	// Fits says whether the memories of a target hold the model, "" where that is unknown.
	Fits string `json:"fits,omitzero"`
	// Bound says which engine of an accelerator bounds an inference, "" for other targets. It
	// is shown next to the latency.
	Bound string `json:"bound,omitzero"`
	// Fit says what the measurement is good for, "" if nobody judged it.
	Fit string `json:"fit,omitzero"`
	// Reason is the main reason for which it is not fit for comparing.
	Reason string `json:"reason,omitzero"`
	Lines  []Line `json:"lines,omitempty"`
}

// Line is a labelled answer, such as the bottleneck.
type Line struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Write writes the page. version is that of the program.
func Write(w io.Writer, p *profile.Profile, version string, a Answers) error {
	if err := p.Validate(); err != nil {
		return err
	}
	d := &document{Version: version, Answers: a, Quantities: p.AllQuantities()}
	c := split(d, p, maxSamples)
	return write(w, p.Model.Name, d, func(w io.Writer) error { _, err := c.WriteTo(w); return err })
}

// studied is the JSON part of a page about a study.
type studied struct {
	Study   *study.Study   `json:"study"`
	Columns []columnar.Ref `json:"columns"` // none
	Version string         `json:"version,omitzero"`
}

// WriteStudy writes a page about what compressing a model would gain and lose. version is that
// of the program.
func WriteStudy(w io.Writer, s *study.Study, version string) error {
	return write(w, s.Model.Name, &studied{s, []columnar.Ref{}, version}, func(io.Writer) error { return nil })
}

// write writes a page with a document and what columns writes beside it.
func write(w io.Writer, name string, d any, columns func(io.Writer) error) error {
	text, err := jsonx.Marshal(d)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(out, head, hash(starter), hash(script), html.EscapeString(title(name)), style)
	if err := part(out, "document", gzip.BestSpeed, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if err := part(out, "columns", gzip.BestSpeed, columns); err != nil {
		return err
	}
	packed, err := pack()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s<script>%s</script>\n</body>\n</html>\n", packed, starter)
	return out.Flush()
}

// hash names a script in a policy.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// pack is the script as it stands in a page: gzipped and in base64, under half of
// its size.
var pack = sync.OnceValues(func() (string, error) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := part(w, "script", gzip.BestCompression, func(w io.Writer) error { _, err := io.WriteString(w, script); return err }); err != nil {
		return "", err
	}
	err := w.Flush()
	return b.String(), err
})

// starter unpacks the script and runs it. The policy knows the hash of both, so
// that nothing else can come out of the packed text.
const starter = `(async()=>{try{` +
	`const n=document.querySelector('script[data-part="script"]'),b=Uint8Array.from(atob(n.textContent),c=>c.charCodeAt(0));` +
	`const t=await new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream("gzip"))).text();` +
	`n.remove();const s=document.createElement("script");s.textContent=t;document.body.append(s)` +
	`}catch(e){document.getElementById("app").textContent="This page cannot be shown. It needs a browser of 2023 or later ("+e+")."}})()`

// The policy names the two scripts by their hashes and allows no network. Names from
// models stand in the title only, escaped, and in the data, which are base64.
const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s' 'sha256-%s'; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'">
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
