package store

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode"
)

// Project groups models and their runs.
type Project struct {
	ID          string `db:"id" json:"id"`
	Name        string `db:"name" json:"name"`
	Description string `db:"description" json:"description"`
	Created     int64  `db:"created" json:"created_ms"`
	Modified    int64  `db:"modified" json:"modified_ms"`
	Deleted     *int64 `db:"deleted" json:"deleted_ms,omitzero"`
}

// Series is what was measured how and where. Its runs compare with each other over time.
type Series struct {
	ID       string `db:"id" json:"id"`
	Project  string `db:"project" json:"project"`
	Kind     string `db:"kind" json:"kind"`
	Model    string `db:"model" json:"model"`
	Target   string `db:"target" json:"target"`
	Engine   string `db:"engine" json:"engine"`
	Machine  string `db:"machine" json:"machine"`
	Settings string `db:"settings" json:"settings"`
	// Newest is the latest run, Checked the one up to which changes were sought.
	Newest  string `db:"newest" json:"-"`
	Checked string `db:"checked" json:"-"`
}

// Run is one result.
type Run struct {
	ID        string `db:"id" json:"id"`
	Project   string `db:"project" json:"project"`
	Series    string `db:"series" json:"series"`
	Job       string `db:"job" json:"job"`
	ModelHash string `db:"model_hash" json:"model_hash,omitzero"`
	ModelFile string `db:"model_file" json:"model_file,omitzero"`
	Output    string `db:"output" json:"output,omitzero"`
	Branch    string `db:"branch" json:"branch,omitzero"`
	Commit    string `db:"commit_id" json:"commit,omitzero"`
	Pull      string `db:"pull" json:"pull,omitzero"`
	Note      string `db:"note" json:"note,omitzero"`
	Blob      string `db:"blob" json:"blob"`
	Created   int64  `db:"created" json:"created_ms"`
	Deleted   *int64 `db:"deleted" json:"deleted_ms,omitzero"`
}

// Figure is a figure of a whole model. Low and High are its interval, nil where it has none.
type Figure struct {
	Run   string   `db:"run" json:"-"`
	Name  string   `db:"name" json:"name"`
	Value float64  `db:"value" json:"value"`
	Low   *float64 `db:"low" json:"low,omitzero"`
	High  *float64 `db:"high" json:"high,omitzero"`
	// Estimator is what the value is, such as median; "" if unknown.
	Estimator string `db:"estimator" json:"estimator,omitzero"`
	// Measured says that the value has noise.
	Measured bool `db:"measured" json:"measured,omitzero"`
}

// AddProject adds a project. It is ErrExists if the name is in use, also by a deleted project.
func (t *Tx) AddProject(name, description string) (Project, error) {
	p := Project{ID: NewID(t.now()), Name: name, Description: description, Created: t.millis(), Modified: t.millis()}
	return p, insert(t, "projects", p)
}

// EnsureProject adds a project unless its name is in use, and returns the one of that name.
func (t *Tx) EnsureProject(name string) (Project, error) {
	p, err := t.AddProject(name, "")
	if errors.Is(err, ErrExists) { // another transaction came first
		return t.Project(name)
	}
	return p, err
}

// Project returns a project by its id or name.
func (t *Tx) Project(idOrName string) (Project, error) {
	return get[Project](t, "projects", "WHERE id = ? OR name = ? ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END", idOrName, idOrName, idOrName)
}

// Projects lists the projects, or those in the bin, by name.
func (t *Tx) Projects(deleted bool) ([]Project, error) {
	where := "WHERE deleted IS NULL ORDER BY name"
	if deleted {
		where = "WHERE deleted IS NOT NULL ORDER BY name"
	}
	return list[Project](t, "projects", where)
}

// ChangeProject sets name and description.
func (t *Tx) ChangeProject(id, name, description string) error {
	others, err := list[Project](t, "projects", "WHERE name = ? AND id <> ?", name, id)
	if err == nil && len(others) > 0 {
		err = ErrExists
	}
	if err != nil {
		return err
	}
	// Runs are found under the words of earlier names, too.
	for _, w := range words(name) {
		if err := t.exec("INSERT INTO words (word, run) SELECT CAST(? AS TEXT), id FROM runs WHERE project = ? ON CONFLICT DO NOTHING", w, id); err != nil {
			return err
		}
	}
	return t.one("UPDATE projects SET name = ?, description = ?, modified = ? WHERE id = ?", name, description, t.millis(), id)
}

// binned lists the tables whose rows can be deleted and restored.
var binned = []string{"projects", "runs"}

// Delete moves rows of "projects" or "runs" to the bin.
func (t *Tx) Delete(table string, ids ...string) error { return t.mark(table, t.millis(), ids...) }

// Restore takes rows out of the bin.
func (t *Tx) Restore(table string, ids ...string) error { return t.mark(table, nil, ids...) }

func (t *Tx) mark(table string, at any, ids ...string) error {
	if !slices.Contains(binned, table) {
		return errors.New("no bin for " + table)
	}
	for _, id := range ids {
		if err := t.one("UPDATE "+table+" SET deleted = ? WHERE id = ?", at, id); err != nil {
			return err
		}
	}
	return nil
}

// Purge removes runs for good that were deleted before a time (milliseconds).
func (t *Tx) Purge(before int64) error {
	return t.exec("DELETE FROM runs WHERE deleted < ?", before)
}

// AddRun records the result of a job, once: a second result of the same job changes nothing and
// returns the first.
func (t *Tx) AddRun(s Series, r Run, figures []Figure, tags []string) (Run, error) {
	if old, err := get[Run](t, "runs", "WHERE job = ?", r.Job); !errors.Is(err, ErrNotFound) {
		return old, err
	}
	s.Project, s.ID = r.Project, NewID(t.now())
	if err := insert(t, "series", s); errors.Is(err, ErrExists) {
		s, err = get[Series](t, "series", "WHERE project = ? AND model = ? AND target = ? AND engine = ? AND machine = ? AND settings = ? AND kind = ?",
			s.Project, s.Model, s.Target, s.Engine, s.Machine, s.Settings, s.Kind)
		if err != nil {
			return r, err
		}
	} else if err != nil {
		return r, err
	}
	r.Series, r.Created = s.ID, t.millis()
	r.ID = NewID(t.now())
	if err := insert(t, "runs", r); err != nil {
		return r, err
	}
	if err := t.one("UPDATE series SET newest = ? WHERE id = ?", r.ID, s.ID); err != nil {
		return r, err
	}
	figures = slices.Clone(figures)
	for i := range figures {
		figures[i].Run = r.ID
	}
	if err := insert(t, "figures", figures...); err != nil {
		return r, err
	}
	if err := t.setTags(r.ID, tags); err != nil {
		return r, err
	}
	return r, t.index(r, s, tags)
}

// Note changes the note and the tags of a run.
func (t *Tx) Note(id, note string, tags []string) error {
	if err := t.one("UPDATE runs SET note = ? WHERE id = ?", note, id); err != nil {
		return err
	}
	if err := t.setTags(id, tags); err != nil {
		return err
	}
	r, err := t.Run(id)
	if err != nil {
		return err
	}
	s, err := t.SeriesByID(r.Series)
	if err != nil {
		return err
	}
	return t.index(r, s, tags)
}

func (t *Tx) setTags(run string, tags []string) error {
	if err := t.exec("DELETE FROM tags WHERE run = ?", run); err != nil {
		return err
	}
	var rows []tag
	for _, name := range slices.Compact(slices.Sorted(slices.Values(tags))) {
		rows = append(rows, tag{run, name})
	}
	return insert(t, "tags", rows...)
}

// longestWord bounds a word of the search in bytes.
const longestWord = 64

// words splits texts for the search.
func words(texts ...string) (out []string) {
	for _, s := range texts {
		for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(w) > longestWord {
				w = strings.ToValidUTF8(w[:longestWord], "")
			}
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// index makes a run findable.
func (t *Tx) index(r Run, s Series, tags []string) error {
	if err := t.exec("DELETE FROM words WHERE run = ?", r.ID); err != nil {
		return err
	}
	p, err := t.Project(r.Project)
	if err != nil {
		return err
	}
	var rows []word
	for _, w := range words(append(tags, p.Name, s.Model, s.Target, s.Engine, s.Machine, s.Kind, s.Settings, r.ModelFile, r.Branch, r.Commit, r.Pull, r.Note)...) {
		rows = append(rows, word{w, r.ID})
	}
	return insert(t, "words", rows...)
}

// Run returns a run.
func (t *Tx) Run(id string) (Run, error) { return get[Run](t, "runs", "WHERE id = ?", id) }

// marks is a list of n parameters.
func marks(n int) string {
	if n == 0 {
		return "(NULL)"
	}
	return "(?" + strings.Repeat(", ?", n-1) + ")"
}

// among is the condition that a column is one of the ids of some runs, with these.
func among(column string, runs []Run, id func(*Run) string) (where string, ids []any) {
	for i := range runs {
		ids = append(ids, id(&runs[i]))
	}
	return "WHERE " + column + " IN " + marks(len(ids)), ids
}

// SeriesOf returns the series of some runs by id.
func (t *Tx) SeriesOf(runs []Run) (map[string]Series, error) {
	where, ids := among("id", runs, func(r *Run) string { return r.Series })
	all, err := list[Series](t, "series", where, ids...)
	out := make(map[string]Series, len(all))
	for _, s := range all {
		out[s.ID] = s
	}
	return out, err
}

// ofRuns returns the rows of a table that some runs have, by run and by name.
func ofRuns[T any](t *Tx, table string, runs []Run, run func(*T) string) (map[string][]T, error) {
	where, ids := among("run", runs, func(r *Run) string { return r.ID })
	all, err := list[T](t, table, where+" ORDER BY run, name", ids...)
	out := map[string][]T{}
	for i := range all {
		out[run(&all[i])] = append(out[run(&all[i])], all[i])
	}
	return out, err
}

// Figures returns the figures of some runs, by run.
func (t *Tx) Figures(runs []Run) (map[string][]Figure, error) {
	return ofRuns(t, "figures", runs, func(f *Figure) string { return f.Run })
}

// Tags returns the tags of some runs, by run.
func (t *Tx) Tags(runs []Run) (map[string][]string, error) {
	all, err := ofRuns(t, "tags", runs, func(v *tag) string { return v.Run })
	out := map[string][]string{}
	for run, list := range all {
		for _, v := range list {
			out[run] = append(out[run], v.Name)
		}
	}
	return out, err
}

// Filter selects runs. Empty fields select all.
type Filter struct {
	Project, Series, Tag, Commit string
	// Search holds words, all of which must begin a word of the run.
	Search string
	// Deleted selects the bin.
	Deleted bool
	// Before is the id of a run: those made before it follow. Limit is how many are returned.
	Before string
	Limit  int
}

// maxSearch bounds the words of a search.
const maxSearch = 8

// fewRows is up to how many rows of an index are read before the latest runs are tried instead.
const fewRows = 2000

// few reports whether a table has few such rows.
func (t *Tx) few(rows string, args ...any) (bool, error) {
	var n int
	err := t.row("SELECT COUNT(*) FROM (SELECT 1 FROM "+rows+" LIMIT ?) AS found", append(args, fewRows)...).Scan(&n)
	return n < fewRows, err
}

// Runs lists runs, the latest first.
func (t *Tx) Runs(f Filter) ([]Run, error) {
	var (
		where []string
		args  []any
	)
	add := func(text string, values ...any) { where, args = append(where, text), append(args, values...) }
	if f.Deleted {
		add("deleted IS NOT NULL")
	} else {
		add("deleted IS NULL")
	}
	for _, c := range []struct{ text, value string }{
		{"project = ?", f.Project},
		{"series = ?", f.Series},
		{"commit_id = ?", f.Commit},
	} {
		if c.value != "" {
			add(c.text, c.value)
		}
	}
	if f.Tag != "" {
		rare, err := t.few("tags WHERE name = ?", f.Tag)
		if err != nil {
			return nil, err
		}
		if rare {
			add("id IN (SELECT run FROM tags WHERE name = ?)", f.Tag)
		} else {
			add("EXISTS (SELECT 1 FROM tags WHERE run = runs.id AND name = ?)", f.Tag)
		}
	}
	search := words(f.Search)
	if len(search) == 0 && strings.TrimSpace(f.Search) != "" {
		return nil, nil // signs alone are in no word
	}
	table, order := "runs", "id"
	for _, w := range search[:min(len(search), maxSearch)] {
		const of = "words WHERE word >= ? AND word < ?"
		end := w + "\U0010ffff"
		rare, err := t.few(of, w, end)
		if err != nil {
			return nil, err
		}
		if rare {
			add("id IN (SELECT run FROM "+of+")", w, end)
			continue
		}
		var first, last sql.NullString
		// One query for each is answered by the index, one for both reads all rows.
		if err := t.row("SELECT (SELECT MIN(word) FROM "+of+"), (SELECT MAX(word) FROM "+of+")", w, end, w, end).Scan(&first, &last); err != nil {
			return nil, err
		}
		switch {
		case first != last: // the latest runs are tried one by one, and many have it
			add("EXISTS (SELECT 1 FROM "+of+" AND run = runs.id)", w, end)
		case table == "runs": // the runs of one word are an index in the order of the result
			table, order = "words JOIN runs ON runs.id = words.run", "words.run"
			add("words.word = ?", first)
		default:
			add("EXISTS (SELECT 1 FROM words WHERE word = ? AND run = runs.id)", first)
		}
	}
	if f.Before != "" {
		add(order+" < ?", f.Before)
	}
	return list[Run](t, table, "WHERE "+strings.Join(where, " AND ")+" ORDER BY "+order+" DESC LIMIT ?", append(args, cmp.Or(f.Limit, 50))...)
}

// Point is a figure of a run in its series.
type Point struct {
	Run       string   `db:"runs.id" json:"run"`
	Branch    string   `db:"runs.branch" json:"branch,omitzero"`
	Commit    string   `db:"runs.commit_id" json:"commit,omitzero"`
	Pull      string   `db:"runs.pull" json:"pull,omitzero"`
	Created   int64    `db:"runs.created" json:"created_ms"`
	Value     float64  `db:"figures.value" json:"value"`
	Low       *float64 `db:"figures.low" json:"low,omitzero"`
	High      *float64 `db:"figures.high" json:"high,omitzero"`
	Estimator string   `db:"figures.estimator" json:"estimator,omitzero"`
	Measured  bool     `db:"figures.measured" json:"measured,omitzero"`
}

// Trend returns the latest points of a figure in a series, in the order in which they were made.
func (t *Tx) Trend(series, figure string, limit int) ([]Point, error) {
	ps, err := list[Point](t, "runs", "JOIN figures ON figures.run = runs.id WHERE runs.series = ? AND runs.deleted IS NULL AND figures.name = ? ORDER BY runs.id DESC LIMIT ?",
		series, figure, limit)
	slices.Reverse(ps)
	return ps, err
}

// Trunk returns the branch that the changes of a project end in: main or master, whichever has
// runs, "" if neither has.
func (t *Tx) Trunk(project string) (string, error) {
	for _, name := range []string{"main", "master"} {
		rs, err := list[Run](t, "runs", "WHERE project = ? AND branch = ? AND pull = '' AND deleted IS NULL LIMIT 1", project, name)
		if err != nil || len(rs) > 0 {
			return name, err
		}
	}
	return "", nil
}

// maxBases bounds the runs among which a base is sought.
const maxBases = 1000

// Base returns the run that a change compares with: the newest of the first commit of a list that
// has one, or else the newest earlier one of a branch, "" for none. Runs of the same model, target
// and engine count, those of the same machine and settings first, pull requests not.
func (t *Tx) Base(run Run, commits []string, branch string) (Run, error) {
	s, err := t.SeriesByID(run.Series)
	if err != nil {
		return Run{}, err
	}
	const same = `series IN (SELECT id FROM series WHERE project = ? AND model = ? AND target = ? AND engine = ? AND kind = ?)
		AND deleted IS NULL AND pull = '' AND id <> ?`
	args := []any{s.Project, s.Model, s.Target, s.Engine, s.Kind, run.ID}
	if len(commits) > 0 {
		of := append(slices.Clone(args), s.Project)
		for _, c := range commits {
			of = append(of, c)
		}
		all, err := list[Run](t, "runs", "WHERE "+same+" AND project = ? AND commit_id IN "+marks(len(commits))+" ORDER BY id DESC LIMIT ?", append(of, maxBases)...)
		if err != nil {
			return Run{}, err
		}
		for _, c := range commits {
			if r, ok := nearest(all, run.Series, func(r *Run) bool { return r.Commit == c }); ok {
				return r, nil
			}
		}
	}
	if branch == "" {
		return Run{}, ErrNotFound
	}
	all, err := list[Run](t, "runs", "WHERE "+same+" AND project = ? AND branch = ? AND id < ? ORDER BY id DESC LIMIT ?",
		append(args, s.Project, branch, run.ID, maxBases)...)
	r, ok := nearest(all, run.Series, func(*Run) bool { return true })
	if err == nil && !ok {
		err = ErrNotFound
	}
	return r, err
}

// nearest returns the first run that passes, one of a series first.
func nearest(all []Run, series string, pass func(*Run) bool) (out Run, ok bool) {
	for i := range all {
		r := &all[i]
		if !pass(r) || ok && r.Series != series {
			continue
		}
		if out, ok = *r, true; r.Series == series {
			return out, true
		}
	}
	return out, ok
}

// SeriesByID returns a series.
func (t *Tx) SeriesByID(id string) (Series, error) {
	return get[Series](t, "series", "WHERE id = ?", id)
}

// Latest returns the latest run of each series of a project.
func (t *Tx) Latest(project string) ([]Run, error) {
	return list[Run](t, "runs", `WHERE id IN (SELECT (SELECT MAX(id) FROM runs WHERE runs.series = series.id AND deleted IS NULL)
		FROM series WHERE project = ?) ORDER BY id DESC`, project)
}

// RunOf returns the run that a job made.
func (t *Tx) RunOf(job string) (Run, error) { return get[Run](t, "runs", "WHERE job = ?", job) }

// upload says that a project may use a file.
type upload struct {
	Hash    string `db:"hash"`
	Project string `db:"project"`
}

// Uploaded notes that a token for one project uploaded a file.
func (t *Tx) Uploaded(hash, project string) error {
	if err := insert(t, "uploads", upload{hash, project}); !errors.Is(err, ErrExists) {
		return err
	}
	return nil
}

// BlobOf reports whether a project may use a file: a run of it has it, or a token for it uploaded it.
// A model that only a profile names, without a file, gives no right: anyone can write its SHA-256.
func (t *Tx) BlobOf(hash, project string) (bool, error) {
	rs, err := list[Run](t, "runs", "WHERE (blob = ? OR model_hash = ? AND model_file <> '' OR output = ?) AND project = ? LIMIT 1", hash, hash, hash, project)
	if err != nil || len(rs) > 0 {
		return len(rs) > 0, err
	}
	us, err := list[upload](t, "uploads", "WHERE hash = ? AND project = ?", hash, project)
	return len(us) > 0, err
}
