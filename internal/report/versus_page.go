package report

import (
	"html/template"
	"io"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile/compare"
)

// versusHTML is the page of a comparison: one file without scripts, in the colours that the
// reader's system asks for.
var versusHTML = template.Must(template.New("versus").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --text: #1c2128; --soft: #59636e; --line: #d6dbe0; --ground: #fff; --bar: #9db7d8; --slower: #b3261e; --faster: #1a6b35; }
@media (prefers-color-scheme: dark) { :root { --text: #e2e6ea; --soft: #9aa4ae; --line: #39414a; --ground: #14181d; --bar: #3f5f86; --slower: #ff8a80; --faster: #7ddc98; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--ground); }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
h2 { font-size: 1rem; margin: 0 0 .3rem; }
p { color: var(--soft); margin: .2rem 0 1rem; }
.answer { font-size: 1.1rem; color: var(--text); margin: .2rem 0; }
.scroll { overflow-x: auto; margin: 0 0 1.6rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; }
th.text, td.text { text-align: left; max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
th.long, td.long { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
tbody th { font-weight: 400; }
th:first-child { position: sticky; left: 0; background: var(--ground); }
tr.last th, tr.last td { font-weight: 600; }
.slower { color: var(--slower); } .faster { color: var(--faster); }
.bar { display: block; height: 4px; margin-left: auto; background: var(--bar); border-radius: 2px; }
ul { padding-left: 1.2rem; }
@media (max-width: 40rem) {
body { margin: 1rem auto; padding: 0 .7rem; font-size: 14px; }
th, td { padding: .25rem .4rem; }
th.name, td.name { display: none; }
th.text { max-width: 9.5rem; }
th.long, td.long { white-space: nowrap; }
.bar { display: none; }
}
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{range .Answers}}<p class="answer">{{.}}</p>
{{end}}<p>{{.What}}</p>
{{range .Tables}}<div class="scroll"><table>
<caption>{{.Caption}}</caption>
<thead><tr>{{range .Head}}<th scope="col"{{with .Class}} class="{{.}}"{{end}}>{{.Value}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr{{if .Last}} class="last"{{end}}>{{range $i, $c := .Cells}}{{if $i}}<td{{with $c.Class}} class="{{.}}"{{end}}>{{$c.Value}}{{if $c.Part}}<span class="bar" style="width: calc({{$c.Part}} * .07rem)"></span>{{end}}</td>{{else}}<th scope="row" class="text">{{$c.Value}}</th>{{end}}{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{with .Notes}}<h2>Limits of this comparison</h2>
<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>
{{end}}<p>{{.Legend}}</p>
</body>
</html>
`))

// Parts of the page.
type (
	versusCell struct {
		Value, Class string
		Part         int // per cent of the longest, the same length in every column
	}
	versusRow struct {
		Cells []versusCell
		Last  bool
	}
	versusSheet struct {
		Caption string
		Head    []versusCell
		Rows    []versusRow
	}
)

// versusPage writes the comparison as a page.
func versusPage(w io.Writer, t *compare.Table, o VersusOptions) error {
	grid, err := versusGrid(t, o)
	if err != nil {
		return err
	}
	groups, _, err := versusRows(t, o)
	if err != nil {
		return err
	}
	longest := 0.0
	for i := range groups {
		for _, f := range groups[i].Figures {
			if f.Value != nil {
				longest = max(longest, *f.Value)
			}
		}
	}
	operators := sheet("Operators", grid, 2)
	for i := range groups {
		col := 2
		for k, f := range groups[i].Figures {
			if f.Value != nil && longest > 0 {
				operators.Rows[i].Cells[col].Part = int(100 * *f.Value / longest)
			}
			if col++; k > 0 {
				col++
			}
		}
	}
	var notes []string
	for i := range t.Notes {
		notes = append(notes, text.Clean(words.VersusNote(t, &t.Notes[i])))
	}
	return versusHTML.Execute(w, map[string]any{
		"Title": text.Clean(words.VersusModels(t)), "Answers": cleaned(answers(t)), "What": capital(versusWhat(t)) + " of one inference; ratios to " + text.Clean(t.Runs[0].Name) + ".",
		"Tables": []versusSheet{sheet("Runs", versusRuns(t), 1), operators}, "Notes": notes, "Legend": words.VersusLegend + ".",
	})
}

func cleaned(list []string) []string {
	for i := range list {
		list[i] = text.Clean(list[i])
	}
	return list
}

// sheet makes a table of the page of texts; the first columns are names.
func sheet(caption string, rows [][]string, names int) versusSheet {
	s := versusSheet{Caption: caption}
	keep := make([]bool, len(rows[0])) // columns with something in them
	for _, r := range rows[1:] {
		for i := range r {
			keep[i] = keep[i] || r[i] != "" || names > 1
		}
	}
	for k, r := range rows {
		var cells []versusCell
		for i, v := range r {
			if !keep[i] {
				continue
			}
			c := versusCell{Value: text.Clean(v)}
			switch {
			case i == 1 && names > 1:
				c.Class = "text name"
			case i < names:
				c.Class = "text"
			case names == 1 && i == len(r)-1: // the version
				c.Class = "long"
			case strings.HasSuffix(v, words.VersusMark(compare.Slower)):
				c.Class = "slower"
			case strings.HasSuffix(v, words.VersusMark(compare.Faster)):
				c.Class = "faster"
			}
			cells = append(cells, c)
		}
		if k == 0 {
			s.Head = cells
		} else {
			s.Rows = append(s.Rows, versusRow{Cells: cells, Last: names > 1 && k == len(rows)-1})
		}
	}
	return s
}
