package draft

import (
	"fmt"
	"strconv"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile"
)

// MaxRuns limits the runs of a file.
const MaxRuns = 1000

// Apart numbers the runs of one file that have the same name, and says that nothing was added up.
// undecided says that some of them may be inferences of one run: the file does not tell, see
// [record.Undecided].
func Apart(ds []*Draft, undecided bool) {
	ps := make([]*profile.Profile, len(ds))
	for i, d := range ds {
		ps[i] = d.P
	}
	for i, f := range apart(ps, undecided) {
		ds[i].found = append(ds[i].found, f)
	}
}

// ApartRuns is [Apart] for runs that were built without a draft.
func ApartRuns(rs []*runlog.Run, undecided bool) {
	ps := make([]*profile.Profile, len(rs))
	for i, r := range rs {
		ps[i] = r.Profile
	}
	for i, f := range apart(ps, undecided) {
		ps[i].Findings = append(ps[i].Findings, f)
	}
}

// apart names the profiles and returns a finding for each, none for one profile.
func apart(ps []*profile.Profile, undecided bool) (out []profile.Finding) {
	if len(ps) < 2 {
		return nil
	}
	of, number := map[string]int{}, map[string]int{}
	for _, p := range ps {
		of[p.Model.Name]++
	}
	for i, p := range ps {
		if name := p.Model.Name; of[name] > 1 {
			number[name]++
			p.Model.Name = Text(name + " " + strconv.Itoa(number[name]))
		}
		f := profile.Finding{ID: "record.runs", Severity: profile.Info, Text: fmt.Sprintf("This is run %d of %d in the file. Each is a profile, and nothing is added up.", i+1, len(ps))}
		if undecided {
			f.Severity = profile.Warning
			f.Text = fmt.Sprintf("This is block %d of %d in the file. The file does not say whether the blocks are inferences of one run or different runs, so each is a profile and nothing is added up.", i+1, len(ps))
		}
		out = append(out, f)
	}
	return out
}

// Beyond counts runs beyond [MaxRuns], which are left out.
func Beyond(ds []*Draft, n int64) {
	if len(ds) > 0 {
		ds[len(ds)-1].Dropped.Add(fmt.Sprintf("runs beyond the first %d", MaxRuns), n)
	}
}
