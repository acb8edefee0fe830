package compat

// PerfAI writes the files of the converter for BM1688, CV186X, CV184X and BM1690.
func PerfAI(in *Input) ([]File, error) {
	p := newPerfAI(in)
	files := p.dumps()
	files = append(files, File{"PerfAI_output.csv", p.world()}, File{"profile_data.js", p.page()})
	return files, nil
}
