package ort_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/ort"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

// session is the profile of two inferences as the runtime writes it.
const session = `[
{"cat" : "Session","pid" :7,"tid" :8,"dur" :1000,"ts" :0,"ph" : "X","name" :"model_loading_uri","args" : {}},
{"cat" : "Session","pid" :7,"tid" :8,"dur" :2000,"ts" :1100,"ph" : "X","name" :"session_initialization","args" : {}},
{"cat" : "Node","pid" :7,"tid" :8,"dur" :30,"ts" :4000,"ph" : "X","name" :"conv'1_kernel_time","args" : {"op_name" : "Conv","provider" : "CPUExecutionProvider","node_index" : "0","output_size" : "400","input_type_shape" : [{"float":[1,3,8,8]}]}},
{"cat" : "Node","pid" :7,"tid" :8,"dur" :10,"ts" :4040,"ph" : "X","name" :"relu_kernel_time","args" : {"op_name" : "Relu","provider" : "CPUExecutionProvider","node_index" : "1","output_size" : "400"}},
{"cat" : "Session","pid" :7,"tid" :8,"dur" :60,"ts" :3995,"ph" : "X","name" :"model_run","args" : {}},
{"cat" : "Node","pid" :7,"tid" :8,"dur" :20,"ts" :5000,"ph" : "X","name" :"conv'1_kernel_time","args" : {"op_name" : "Conv","provider" : "CPUExecutionProvider","node_index" : "0","output_size" : "400","input_type_shape" : [{"float":[1,3,8,8]}]}},
{"cat" : "Node","pid" :7,"tid" :8,"dur" :5,"ts" :5030,"ph" : "X","name" :"relu_kernel_time","args" : {"op_name" : "Relu","provider" : "CPUExecutionProvider","node_index" : "1","output_size" : "400"}},
{"cat" : "Session","pid" :7,"tid" :8,"dur" :40,"ts" :4998,"ph" : "X","name" :"model_run","args" : {}}
]
`

// pandas is the same profile as read_json and to_csv make it.
const pandas = `,cat,pid,tid,dur,ts,ph,name,args
0,Session,7,8,1000,0,X,model_loading_uri,{}
1,Session,7,8,2000,1100,X,session_initialization,{}
2,Node,7,8,30,4000,X,conv'1_kernel_time,"{'op_name': 'Conv', 'provider': 'CPUExecutionProvider', 'node_index': '0', 'output_size': '400', 'input_type_shape': [{'float': [1, 3, 8, 8]}]}"
3,Node,7,8,10,4040,X,relu_kernel_time,"{'op_name': 'Relu', 'provider': 'CPUExecutionProvider', 'node_index': '1', 'output_size': '400'}"
4,Session,7,8,60,3995,X,model_run,{}
5,Node,7,8,20,5000,X,conv'1_kernel_time,"{'op_name': 'Conv', 'provider': 'CPUExecutionProvider', 'node_index': '0', 'output_size': '400', 'input_type_shape': [{'float': [1, 3, 8, 8]}]}"
6,Node,7,8,5,5030,X,relu_kernel_time,"{'op_name': 'Relu', 'provider': 'CPUExecutionProvider', 'node_index': '1', 'output_size': '400'}"
7,Session,7,8,40,4998,X,model_run,{}
`

// normalised is the same profile with flattened objects: a column for each argument, which is
// empty or a float where other rows lack it.
const normalised = `cat;pid;tid;dur;ts;ph;name;args.op_name;args.provider;args.node_index;args.output_size;args.input_type_shape
Session;7;8;1000.0;0;X;model_loading_uri;;;;;
Session;7;8;2000.0;1100;X;session_initialization;nan;nan;nan;nan;nan
Node;7;8;30.0;4000;X;conv'1_kernel_time;Conv;CPUExecutionProvider;0.0;400.0;[{'float': [1, 3, 8, 8]}]
Node;7;8;10.0;4040;X;relu_kernel_time;Relu;CPUExecutionProvider;1.0;400.0;
Session;7;8;60.0;3995;X;model_run;;;;;
Node;7;8;20.0;5000;X;conv'1_kernel_time;Conv;CPUExecutionProvider;0.0;400.0;[{'float': [1, 3, 8, 8]}]
Node;7;8;5.0;5030;X;relu_kernel_time;Relu;CPUExecutionProvider;1.0;400.0;
Session;7;8;40.0;4998;X;model_run;;;;;
`

func sessionsOf(t *testing.T, name, text string) []*profile.Profile {
	t.Helper()
	return records.Read(t, ort.Format(), []*record.File{record.Bytes(name, []byte(text))}, record.Options{})
}

// TestTables: the tables say what the JSON says.
func TestTables(t *testing.T) {
	t.Parallel()
	want := sessionsOf(t, "x.json", session)[0]
	if m := want.Totals.Latency; *m.N != 1 || *m.Mean != 40e-6 || len(want.Layers) != 2 || *want.Phases.FirstRunS != 60e-6 || len(want.Layers[0].Inputs) != 1 {
		t.Fatalf("%+v", m)
	}
	book := excelize.NewFile()
	for i, l := range strings.Split(strings.TrimSpace(normalised), "\n") {
		row := []any{}
		for _, cell := range strings.Split(l, ";") {
			row = append(row, cell)
		}
		if err := book.SetSheetRow("Sheet1", "A"+string(rune('1'+i)), &row); err != nil {
			t.Fatal(err)
		}
	}
	var xlsx bytes.Buffer
	if err := book.Write(&xlsx); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"pandas.csv": pandas, "normalised.csv": normalised, "tabs.tsv": strings.ReplaceAll(normalised, ";", "\t"), "book.xlsx": xlsx.String()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		ps := records.Read(t, ort.Format(), records.Files(t, path), record.Options{})
		if len(ps) != 1 {
			t.Fatalf("%s: %d profiles", name, len(ps))
		}
		got := ps[0]
		if d := cmp.Diff(want.Layers, got.Layers); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(want.Totals, got.Totals); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(want.Phases, got.Phases); d != "" || len(got.Incomplete) > 0 {
			t.Errorf("%s: %s %+v", name, d, got.Incomplete)
		}
	}
	_, err := ort.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("x.csv", []byte("name,dur,ts,op_name\n"))}})
	if err == nil {
		t.Error("a table without rows is not a profile")
	}
}

// TestSessions: sessions of one file are not added up.
func TestSessions(t *testing.T) {
	t.Parallel()
	slower := strings.ReplaceAll(session, `"dur" :40,`, `"dur" :90,`)
	joined := strings.TrimSuffix(strings.TrimSpace(session), "]") + "," + strings.TrimPrefix(strings.TrimSpace(slower), "[")
	second := strings.Replace(pandas, ",8,40,4998", ",8,90,4998", 1)
	for name, text := range map[string]string{"documents": session + slower, "one list": joined, "tables": pandas + second} {
		ps := sessionsOf(t, "x", text)
		if len(ps) != 2 {
			t.Errorf("%s: %d profiles", name, len(ps))
			continue
		}
		for i, want := range []float64{40e-6, 90e-6} {
			if m := ps[i].Totals.Latency; *m.N != 1 || *m.Mean != want || *ps[i].Phases.LoadS != 1e-3 || !records.Found(ps[i], "record.runs") {
				t.Errorf("%s: run %d: %+v", name, i, m)
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte(pandas))
	f.Add([]byte(normalised))
	f.Add([]byte("name,dur,ts,args\nx_kernel_time,1,2,\"{'op_name': 'A', 'n': (1, None, True)}\"\nname,dur,ts,args\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, ort.Format(), "a.csv", b) })
}
