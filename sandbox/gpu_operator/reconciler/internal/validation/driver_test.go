// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package validation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// driverRoot makes a root with the given files; a value that starts with "->" makes a link.
func driverRoot(t *testing.T, files map[string]string) Root {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(content, "->"); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Root{Host: "/", Container: root}
}

func TestFind(t *testing.T) {
	const library = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
	for name, test := range map[string]struct {
		files map[string]string
		found bool
	}{
		"as packages lay it out": {map[string]string{
			"usr/bin/nvidia-smi": "x", library: "->libnvidia-ml.so.595.91.07", library[:len(library)-1] + "595.91.07": "x"}, true},
		"nvidia-smi is a link":    {map[string]string{"usr/bin/nvidia-smi": "->/bin/true", library: "x"}, false},
		"no library":              {map[string]string{"usr/bin/nvidia-smi": "x"}, false},
		"the library dangles":     {map[string]string{"usr/bin/nvidia-smi": "x", library: "->nowhere"}, false},
		"the other search folder": {map[string]string{"opt/bin/nvidia-smi": "x", "usr/lib64/libnvidia-ml.so.1": "x"}, true},
		"an unsearched folder":    {map[string]string{"usr/local/bin/nvidia-smi": "x", library: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := driverRoot(t, test.files).Find(); (err == nil) != test.found {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestWaitForDriverEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var log strings.Builder
	output := filepath.Join(t.TempDir(), "driver-ready")
	if err := WaitForDriver(ctx, []Root{driverRoot(t, nil)}, output, &log); err == nil {
		t.Error("no driver, and yet no error")
	}
	if !strings.Contains(log.String(), "nvidia-smi: no regular file") || !strings.Contains(log.String(), "No driver yet") {
		t.Errorf("log: %s", log.String())
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("the file was written without a driver")
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "driver-ready")
	if err := write(path, Root{Host: "/", Container: "/host"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "IS_HOST_DRIVER=true\nNVIDIA_DRIVER_ROOT=/\nDRIVER_ROOT_CTR_PATH=/host\nNVIDIA_DEV_ROOT=/\nDEV_ROOT_CTR_PATH=/host\n"
	if string(content) != want {
		t.Errorf("got %s", content)
	}
}
