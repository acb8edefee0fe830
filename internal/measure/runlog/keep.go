package runlog

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/opmeter/opmeter/profile"
)

// Quantities collects the descriptions of figures that opmeter's own table lacks, for
// [profile.Profile].Quantities. The zero value is ready.
type Quantities struct {
	List []profile.Quantity
	at   map[string]bool
}

// maxQuantities bounds the foreign figures of one record.
const maxQuantities = 200

// Key makes the key of a quantity of any text: lower case, what is not a letter or
// digit becomes an underscore. It is "" where nothing is left.
func Key(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
		if b.Len() >= 80 {
			break
		}
	}
	return b.String()
}

// Set puts a figure of a record into a layer under the key of a quantity. One that opmeter's
// table lacks is described by q, whose name stands for an empty key. Figures that are not finite,
// and more than some hundreds of foreign ones, are left out; ok says whether it was kept.
func (qs *Quantities) Set(l *profile.Layer, q profile.Quantity, v float64) (ok bool) {
	if key, ok := qs.describe(q, v); ok {
		return l.Set(key, profile.Value(profile.Imported, v, "")) == nil
	}
	return false
}

// SetTotal is Set for the whole model.
func (qs *Quantities) SetTotal(t *profile.Totals, q profile.Quantity, v float64) (ok bool) {
	if key, ok := qs.describe(q, v); ok {
		return t.Set(key, profile.Value(profile.Imported, v, "")) == nil
	}
	return false
}

func (qs *Quantities) describe(q profile.Quantity, v float64) (key string, ok bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", false
	}
	if q.Key == "" {
		q.Key = q.Name
	}
	if q.Key = Key(q.Key); q.Key == "" {
		return "", false
	}
	if _, known := profile.Lookup(q.Key); known || qs.at[q.Key] {
		return q.Key, true
	}
	if len(qs.List) >= maxQuantities {
		return "", false
	}
	if q.Name == "" {
		q.Name = q.Key
	}
	if q.Group == "" {
		q.Group = "Record"
	}
	if qs.at == nil {
		qs.at = map[string]bool{}
	}
	qs.at[q.Key] = true
	qs.List = append(qs.List, q)
	return q.Key, true
}

// Dropped counts what a reader had to leave out, by reason, and makes losses and a
// finding of them.
type Dropped struct {
	order  []string
	counts map[string]int64
}

// Add counts n records that were left out for a reason, in a few words.
func (d *Dropped) Add(reason string, n int64) {
	if n <= 0 {
		return
	}
	if d.counts == nil {
		d.counts = map[string]int64{}
	}
	if _, ok := d.counts[reason]; !ok {
		if len(d.order) >= 20 {
			reason = "other reasons"
		}
		if _, ok := d.counts[reason]; !ok {
			d.order = append(d.order, reason)
		}
	}
	d.counts[reason] += n
}

// Total is the number of all.
func (d *Dropped) Total() (n int64) {
	for _, v := range d.counts {
		n += v
	}
	return n
}

// To notes the losses in a run. A file that was cut is one of them.
func (d *Dropped) To(r *Run) {
	for _, reason := range d.order {
		r.Lost = append(r.Lost, profile.Loss{Records: new(d.counts[reason]), Cause: profile.Cause{Code: profile.ByRecord, Text: reason}})
	}
}

// Lose notes that an unknown number of records is missing. text says why.
func (r *Run) Lose(text string) {
	r.Lost = append(r.Lost, profile.Loss{Cause: profile.Cause{Code: profile.ByRecord, Text: text}})
}

// Found adds a finding to the run's profile.
func (r *Run) Found(id string, s profile.Severity, format string, args ...any) {
	r.Profile.Findings = append(r.Profile.Findings, profile.Finding{ID: id, Severity: s, Text: fmt.Sprintf(format, args...)})
}
