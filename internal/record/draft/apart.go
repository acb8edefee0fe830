package draft

import (
	"fmt"
	"strconv"

	"github.com/opmeter/opmeter/profile"
)

// MaxRuns limits the runs of a file.
const MaxRuns = 1000

// Apart numbers the runs of one file that have the same name, and says that nothing was added up.
// undecided says that some of them may be inferences of one run: the file does not tell, see
// [record.Undecided].
func Apart(ds []*Draft, undecided bool) {
	if len(ds) < 2 {
		return
	}
	of, number := map[string]int{}, map[string]int{}
	for _, d := range ds {
		of[d.P.Model.Name]++
	}
	for i, d := range ds {
		if name := d.P.Model.Name; of[name] > 1 {
			number[name]++
			d.P.Model.Name = Text(name + " " + strconv.Itoa(number[name]))
		}
		if undecided {
			d.Found("record.runs", profile.Warning, "This is block %d of %d in the file. The file does not say whether the blocks are inferences of one run or different runs, so each is a profile and nothing is added up.", i+1, len(ds))
			continue
		}
		d.Found("record.runs", profile.Info, "This is run %d of %d in the file. Each is a profile, and nothing is added up.", i+1, len(ds))
	}
}

// Beyond counts runs beyond [MaxRuns], which are left out.
func Beyond(ds []*Draft, n int64) {
	if len(ds) > 0 {
		ds[len(ds)-1].Dropped.Add(fmt.Sprintf("runs beyond the first %d", MaxRuns), n)
	}
}
