package find

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// On Linux: an active environment before those of folders, then Node's, then the system's; one
// file under several names once.
func TestLinux(t *testing.T) {
	t.Parallel()
	e := computer("linux", "amd64", "/home/u/work/sub", "/home/u", map[string]string{
		"VIRTUAL_ENV":     "/home/u/env",
		"PATH":            "/home/u/env/bin:relative:/usr/bin:/home/u/.pyenv/shims",
		"LD_LIBRARY_PATH": "/srv/lib",
	}, map[string]string{
		"/home/u/env/bin/python3": "-> /usr/bin/python3.11",
		"/home/u/env/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1":           linux64,
		"/home/u/env/lib/python3.11/site-packages/onnxruntime-1.20.1.dist-info/METADATA":               "",
		"/home/u/env/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime_providers_shared.so": linux64,
		"/home/u/work/.venv/lib/python3.12/site-packages/openvino/libs/libopenvino_c.so.2641":          linux64,
		"/home/u/work/.venv/lib/python3.12/site-packages/openvino-2026.4.1.dist-info/METADATA":         "",
		"/home/u/work/.venv/lib/python3.12/site-packages/ai_edge_litert/libLiteRt.so":                  linux64,
		"/home/u/work/.venv/lib/python3.12/site-packages/ai_edge_litert-2.3.0.dist-info/RECORD":        "",
		"/home/u/.pyenv/version":       "3.10.4\n",
		"/home/u/.pyenv/shims/python3": "#!/bin/sh",
		"/home/u/.pyenv/versions/3.10.4/lib/python3.10/site-packages/onnxruntime/capi/onnxruntime_pybind11_state.cpython-310-x86_64-linux-gnu.so": linux64,
		"/home/u/.pyenv/versions/3.10.4/lib/python3.10/site-packages/onnxruntime_gpu-1.15.1.dist-info/METADATA":                                   "",
		"/home/u/.pyenv/versions/3.12.1/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.17.0":                                   linux64,
		"/home/u/.local/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.19.0":                                                   linux64,
		"/home/u/work/node_modules/onnxruntime-node/package.json":                                                                                 `{"name":"onnxruntime-node","version":"1.21.0-rev","scripts":{}}`,
		"/home/u/work/node_modules/onnxruntime-node/bin/napi-v3/linux/x64/libonnxruntime.so.1":                                                    linux64,
		"/home/u/work/node_modules/onnxruntime-node/bin/napi-v3/linux/arm64/libonnxruntime.so.1":                                                  linuxARM,
		"/home/u/work/node_modules/onnxruntime-node/bin/napi-v3/win32/x64/onnxruntime.dll":                                                        windows64,
		"/srv/lib/libonnxruntime.so":          "-> /srv/lib/libonnxruntime.so.1.18.0",
		"/srv/lib/libonnxruntime.so.1":        "-> /srv/lib/libonnxruntime.so.1.18.0",
		"/srv/lib/libonnxruntime.so.1.18.0":   linux64,
		"/etc/ld.so.conf":                     "# folders\ninclude /etc/ld.so.conf.d/*.conf\ninclude ld.so.conf\n",
		"/etc/ld.so.conf.d/tf.conf":           "/data/tf/lib # of TensorFlow\n",
		"/data/tf/lib/libtensorflowlite_c.so": linux64,
		"/opt/intel/openvino_2024/runtime/lib/intel64/libopenvino_c.so.2024.6.0": linux64,
		"/opt/intel/openvino_2024/runtime/lib/intel64/libopenvino_c.so":          "-> /opt/intel/openvino_2024/runtime/lib/intel64/libopenvino_c.so.2024.6.0",
		"/opt/onnxruntime-linux-x64-1.22.0/lib/libonnxruntime.so.1.22.0":         linux64,
		"/usr/lib/x86_64-linux-gnu/libonnxruntime.so.1.21":                       "-> /nowhere",
		"/usr/lib/x86_64-linux-gnu/libopenvino_c.so.2410":                        linux64,
		"/usr/bin/python3":    "-> /usr/bin/python3.11",
		"/usr/bin/python3.11": "#!",
		"/usr/lib/python3/dist-packages/onnxruntime/capi/libonnxruntime.so.1.16.0":               linuxARM,
		"/usr/local/lib/python3.11/dist-packages/onnxruntime/capi/onnxruntime_pybind11_state.so": linux64,
	})
	same(t, short(e.All()), []string{
		"onnxruntime 1.20.1 python /home/u/env/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1 of onnxruntime",
		"onnxruntime 1.16.0 python /usr/lib/python3/dist-packages/onnxruntime/capi/libonnxruntime.so.1.16.0 !other_machine",
		"onnxruntime  python /usr/local/lib/python3.11/dist-packages/onnxruntime/capi !module_only",
		"onnxruntime 1.15.1 python /home/u/.pyenv/versions/3.10.4/lib/python3.10/site-packages/onnxruntime/capi of onnxruntime-gpu !module_only",
		"onnxruntime 1.17.0 python /home/u/.pyenv/versions/3.12.1/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.17.0",
		"onnxruntime 1.19.0 python /home/u/.local/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.19.0",
		"onnxruntime 1.21.0-rev node /home/u/work/node_modules/onnxruntime-node/bin/napi-v3/linux/x64/libonnxruntime.so.1 of onnxruntime-node",
		"onnxruntime 1.18.0 system /srv/lib/libonnxruntime.so",
		"onnxruntime 1.22.0 system /opt/onnxruntime-linux-x64-1.22.0/lib/libonnxruntime.so.1.22.0",
		"litert 2.3.0 python /home/u/work/.venv/lib/python3.12/site-packages/ai_edge_litert/libLiteRt.so of ai-edge-litert",
		"tflite  system /data/tf/lib/libtensorflowlite_c.so",
		"openvino 2026.4.1 python /home/u/work/.venv/lib/python3.12/site-packages/openvino/libs/libopenvino_c.so.2641 of openvino",
		"openvino 2024.1.0 system /usr/lib/x86_64-linux-gnu/libopenvino_c.so.2410",
		"openvino 2024.6.0 system /opt/intel/openvino_2024/runtime/lib/intel64/libopenvino_c.so",
	})
}

func TestMac(t *testing.T) {
	t.Parallel()
	e := computer("darwin", "arm64", "/Users/u/p", "/Users/u", map[string]string{"PATH": "/opt/homebrew/bin:/usr/bin"}, map[string]string{
		"/opt/homebrew/bin/python3":                              "-> /opt/homebrew/Cellar/python@3.13/3.13.1/bin/python3.13",
		"/opt/homebrew/bin/node":                                 "#!",
		"/opt/homebrew/Cellar/python@3.13/3.13.1/bin/python3.13": "#!",
		"/opt/homebrew/lib/python3.13/site-packages/onnxruntime/capi/libonnxruntime.1.20.1.dylib":              macARM,
		"/opt/homebrew/lib/python3.13/site-packages/onnxruntime/capi/onnxruntime_pybind11_state.so":            macARM,
		"/opt/homebrew/lib/libonnxruntime.dylib":                                                               "-> /opt/homebrew/Cellar/onnxruntime/1.21.0/lib/libonnxruntime.1.21.0.dylib",
		"/opt/homebrew/Cellar/onnxruntime/1.21.0/lib/libonnxruntime.1.21.0.dylib":                              fatFile(0x01000007, 0x0100000c),
		"/opt/homebrew/lib/node_modules/onnxruntime-node/package.json":                                         `{"name":"onnxruntime-node","version":"1.19.2"}`,
		"/opt/homebrew/lib/node_modules/onnxruntime-node/bin/napi-v3/darwin/arm64/libonnxruntime.1.19.2.dylib": macARM,
		"/Users/u/Library/Python/3.9/lib/python/site-packages/ai_edge_litert/libLiteRt.dylib":                  machFile(0x01000007, 6),
		"/usr/local/lib/libopenvino_c.2520.dylib":                                                              linuxARM,
	})
	same(t, short(e.All()), []string{
		// A folder of Homebrew is both an environment and where libraries are.
		"onnxruntime 1.21.0 python /opt/homebrew/lib/libonnxruntime.dylib",
		"onnxruntime 1.20.1 python /opt/homebrew/lib/python3.13/site-packages/onnxruntime/capi/libonnxruntime.1.20.1.dylib",
		"onnxruntime 1.19.2 node /opt/homebrew/lib/node_modules/onnxruntime-node/bin/napi-v3/darwin/arm64/libonnxruntime.1.19.2.dylib of onnxruntime-node",
		"litert  python /Users/u/Library/Python/3.9/lib/python/site-packages/ai_edge_litert/libLiteRt.dylib !other_machine",
		"openvino 2025.2.0 system /usr/local/lib/libopenvino_c.2520.dylib !other_system",
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	e := computer("windows", "amd64", `C:\Users\u\p`, `C:\Users\u`, map[string]string{
		"PATH":              `C:\Users\u\p\venv\Scripts;C:\Python312;C:\Windows\System32;.`,
		"SystemRoot":        `C:\Windows`,
		"APPDATA":           `C:\Users\u\AppData\Roaming`,
		"LOCALAPPDATA":      `C:\Users\u\AppData\Local`,
		"ProgramFiles(x86)": `C:\Program Files (x86)`,
		"OPMETER_TFLITE":    `D:/libs/`,
	}, map[string]string{
		`C:\Users\u\p\venv\Scripts\python.exe`:                                                                                 "#!",
		`C:\Users\u\p\venv\Lib\site-packages\onnxruntime\capi\onnxruntime.dll`:                                                 windows64,
		`C:\Users\u\p\venv\Lib\site-packages\onnxruntime_directml-1.20.1.dist-info\METADATA`:                                   "",
		`C:\Python312\python.exe`:                                                                                              "#!",
		`C:\Python312\Lib\site-packages\ai_edge_litert\libLiteRt.dll`:                                                          windows64,
		`C:\Users\u\AppData\Local\Programs\Python\Python311\Lib\site-packages\onnxruntime\capi\onnxruntime_pybind11_state.pyd`: windows64,
		`C:\Users\u\AppData\Roaming\npm\node_modules\onnxruntime-node\package.json`:                                            `{"name":"onnxruntime-node","version":"1.16.3"}`,
		`C:\Users\u\AppData\Roaming\npm\node_modules\onnxruntime-node\bin\napi-v3\win32\x64\onnxruntime.dll`:                   windows64,
		`C:\Windows\System32\onnxruntime.dll`:                                                                                  windows64,
		`D:\libs\tensorflowlite_c.dll`:                                                                                         peFile(0xaa64, 0x2022),
		`C:\Program Files (x86)\Intel\openvino_2024\runtime\bin\intel64\Release\openvino_c.dll`:                                windows64,
	})
	same(t, short(e.All()), []string{
		`onnxruntime 1.20.1 python C:\Users\u\p\venv\Lib\site-packages\onnxruntime\capi\onnxruntime.dll of onnxruntime-directml`,
		`onnxruntime  python C:\Users\u\AppData\Local\Programs\Python\Python311\Lib\site-packages\onnxruntime\capi !module_only`,
		`onnxruntime 1.16.3 node C:\Users\u\AppData\Roaming\npm\node_modules\onnxruntime-node\bin\napi-v3\win32\x64\onnxruntime.dll of onnxruntime-node`,
		`onnxruntime  system C:\Windows\System32\onnxruntime.dll`,
		`litert  python C:\Python312\Lib\site-packages\ai_edge_litert\libLiteRt.dll`,
		`tflite  variable D:\libs\tensorflowlite_c.dll !other_machine`,
		`openvino  system C:\Program Files (x86)\Intel\openvino_2024\runtime\bin\intel64\Release\openvino_c.dll`,
	})
}

// What is picked, and what the error says where nothing can be.
func TestPick(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.9.0":                 linux64,
		"/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1":                linux64,
		"/opt/ort/lib/libonnxruntime.so.1.200.0":                                                         linux64,
		"/w/.venv/lib/python3.11/site-packages/tflite_runtime/_pywrap_tensorflow_interpreter_wrapper.so": linux64,
		"/w/.venv/lib/python3.11/site-packages/tflite_runtime-2.14.0.dist-info/METADATA":                 "",
		"/lib/libopenvino_c.so":  linuxARM,
		"/x/script.so":           "GROUP ( libonnxruntime.so.1 )\n",
		"/x/empty.so":            "",
		"/x/object.so":           elfFile(62, 1),
		"/x/garbage.so":          "\x00\x01\x02",
		"/x/denied/libLiteRt.so": linux64,
		"/x/lost.so":             "-> /gone",
		"/x/release/lib/libonnxruntime.so.1.30.0": linux64,
		"/x/folder/": "",
	}
	for _, c := range []struct {
		engine, want string
		variables    map[string]string
		path         string
		code         external.Code
		text         string
	}{
		{engine: "onnxruntime", path: "/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1"},
		{engine: "onnxruntime", want: "1.9", path: "/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.9.0"},
		{engine: "onnxruntime", want: "1.200", path: "/opt/ort/lib/libonnxruntime.so.1.200.0"},
		{
			engine: "onnxruntime", want: "1.2", code: external.NotFound,
			text: "no ONNX Runtime 1.2 here, there is 1.20.1, 1.9.0, 1.200.0: pip install 'onnxruntime==1.2.*', or --engine onnxruntime=/path/to/libonnxruntime.so",
		},
		{engine: "litert", code: external.NotFound, text: "no LiteRT here: pip install ai-edge-litert, or --engine litert=/path/to/libLiteRt.so"},
		{engine: "tflite", code: external.NotFound, text: "tflite-runtime 2.14.0 in /w/.venv/lib/python3.11/site-packages/tflite_runtime has a Python module only, without libtensorflowlite_c.so: build "},
		{engine: "openvino", code: external.NotLibrary, text: "/lib/libopenvino_c.so is for arm64, this is amd64: pip install openvino, or"},
		{engine: "steam", code: external.NotFound, text: `"steam" is not an engine: use opmeter, onnxruntime, litert, tflite, openvino or tflm`},
		{engine: "onnxruntime", want: "/x/script.so", code: external.NotLibrary, text: "/x/script.so is a text file, not a shared library"},
		{engine: "onnxruntime", want: "/x/empty.so", code: external.NotLibrary, text: "/x/empty.so is empty"},
		{engine: "onnxruntime", want: "/x/object.so", code: external.NotLibrary, text: "/x/object.so is a program or object file"},
		{engine: "onnxruntime", want: "../x/garbage.so", code: external.NotLibrary, text: "/x/garbage.so is not a shared library"},
		{engine: "onnxruntime", want: "/x/lost.so", code: external.NotFound, text: "/x/lost.so: no such file or folder"},
		{engine: "onnxruntime", want: "/x/folder", code: external.NotFound, text: "/x/folder has no libonnxruntime.so"},
		{engine: "onnxruntime", want: "../x/release/", path: "/x/release/lib/libonnxruntime.so.1.30.0"},
		{engine: "onnxruntime", want: "../x/release/lib", path: "/x/release/lib/libonnxruntime.so.1.30.0"},
		{engine: "onnxruntime", want: "/w/.venv", path: "/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1"},
		{engine: "onnxruntime", want: ".venv/lib/python3.11/site-packages/onnxruntime", path: "/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1"},
		{engine: "litert", want: "/x/denied", code: external.NotLibrary, text: "/x/denied/libLiteRt.so cannot be read: permission denied"},
		// A variable that leads to nothing is not passed over for what is elsewhere.
		{
			engine: "onnxruntime", variables: map[string]string{"OPMETER_ONNXRUNTIME": "/gone"}, code: external.NotFound,
			text: "OPMETER_ONNXRUNTIME=/gone: no such file or folder",
		},
		{engine: "onnxruntime", want: "1.20", variables: map[string]string{"OPMETER_ONNXRUNTIME": "/gone"}, path: "/w/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1"},
		{engine: "onnxruntime", variables: map[string]string{"OPMETER_ONNXRUNTIME": "/x/release"}, path: "/x/release/lib/libonnxruntime.so.1.30.0"},
	} {
		e := computer("linux", "amd64", "/w", "/root", c.variables, files)
		e.Files.(*tree).deny = "/x/denied/libLiteRt.so"
		f, err := e.Pick(c.engine, c.want)
		if c.code == "" {
			if err != nil || f.Path != c.path {
				t.Errorf("%s %q: %q, %v, want %q", c.engine, c.want, f.Path, err, c.path)
			}
			continue
		}
		ge, ok := errors.AsType[*external.Error](err)
		if !ok || ge.Code != c.code || !strings.HasPrefix(ge.Text, c.text) || strings.Contains(ge.Text, "\n") {
			t.Errorf("%s %q: %v, want %s %q", c.engine, c.want, err, c.code, c.text)
		}
	}
}

// Two distributions that share a folder leave the version to the file's name.
func TestTwoDistributions(t *testing.T) {
	t.Parallel()
	site := "/w/.venv/lib/python3.11/site-packages/"
	e := computer("linux", "amd64", "/w", "", nil, map[string]string{
		site + "onnxruntime/capi/libonnxruntime.so":        linux64,
		site + "onnxruntime-1.20.1.dist-info/METADATA":     "",
		site + "onnxruntime_gpu-1.19.0.dist-info/METADATA": "",
		site + "onnxruntime_genai-0.5.0.dist-info/RECORD":  "",
	})
	same(t, short(e.All()), []string{"onnxruntime  python " + site + "onnxruntime/capi/libonnxruntime.so of onnxruntime onnxruntime-gpu"})
}

// Links that lead in circles, a configuration that includes itself, a hundred thousand files.
func TestEndless(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/w/node_modules":    "-> /w/node_modules",
		"/w/.venv/lib":       "-> /w/.venv",
		"/etc/ld.so.conf":    "include *\ninclude /etc/*\n\x00\xff,,,,\n/relative/../usr/lib\n",
		"/etc/ld.so.conf.d/": "",
	}
	if got := computer("linux", "amd64", "/w", "/w", map[string]string{"PATH": strings.Repeat("/w:", 10_000)}, files).All(); len(got) != 0 {
		t.Errorf("found %v", short(got))
	}
}

// The packages that the tests of engines use are found where they were unpacked, with the versions
// of their names.
func TestPackages(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	if dir == "" {
		material.Skip(t, "no packages of engines: bench/engines/install DIR fetches them, OPMETER_TEST_ENGINES=DIR names them")
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range list {
		name, version, ok := strings.Cut(d.Name(), "-")
		engine := map[string]string{"onnxruntime": "onnxruntime", "onnxruntime_node": "onnxruntime", "ai_edge_litert": "litert", "openvino": "openvino"}[name]
		if !ok || engine == "" {
			continue
		}
		n++
		f, err := Here().Pick(engine, filepath.Join(dir, d.Name()))
		if name == "onnxruntime" && version == "1.16.3" { // of Linux; its package has a module only
			if ge, ok := errors.AsType[*external.Error](err); !ok || ge.Code != external.NotFound || !strings.Contains(ge.Text, "Python module only") {
				t.Errorf("%s: %+v, %v", d.Name(), f, err)
			}
			continue
		}
		if err != nil || f.Version != version || f.Problem != "" || f.Where != Named {
			t.Errorf("%s: %+v, %v", d.Name(), f, err)
		}
	}
	if n == 0 {
		t.Errorf("%s has no packages", dir)
	}
}
