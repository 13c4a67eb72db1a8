// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package validation is the init container `driver-validation`: it waits until an NVIDIA driver can be found and tells
// the plugin where.
package validation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// binaryDirs and libraryDirs are searched in this order below a driver root.
var (
	binaryDirs  = []string{"opt/bin", "usr/bin", "usr/sbin", "bin", "sbin"}
	libraryDirs = []string{
		"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
		"lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu",
	}
)

const (
	pause = 10 * time.Second
	// hintEvery says after how many attempts the hint is printed again.
	hintEvery = 6
	hint      = "No driver yet. Expected: nvidia-smi (a regular file) and libnvidia-ml.so.1 on the host, or in a driver " +
		"container's root. Install the driver on this node, or look at its driver pod.\n"
)

// Root is a place where the driver may be: its path on the host and in this container.
type Root struct {
	Host, Container string
}

// IsHost tells whether the driver is installed on the host itself.
func (r Root) IsHost() bool { return r.Host == "/" }

// Find returns the paths of nvidia-smi and of the library below the root, as seen in this container. nvidia-smi must be
// a regular file, not a link; links to the library are followed.
func (r Root) Find() (smi, library string, err error) {
	smi, err = search(r.Container, binaryDirs, "nvidia-smi", os.Lstat)
	if err != nil {
		return "", "", err
	}
	library, err = search(r.Container, libraryDirs, "libnvidia-ml.so.1", os.Stat)
	return smi, library, err
}

func search(root string, directories []string, name string, stat func(string) (os.FileInfo, error)) (string, error) {
	for _, directory := range directories {
		path := filepath.Join(root, directory, name)
		if info, err := stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: no regular file in %s", name, strings.Join(directories, ", "))
}

// check finds the driver and asks it for its version, which does not initialise a GPU.
func (r Root) check(ctx context.Context, output io.Writer) error {
	smi, _, err := r.Find()
	if err != nil {
		return err
	}
	inside := "/" + strings.TrimPrefix(strings.TrimPrefix(smi, r.Container), "/")
	command := exec.CommandContext(ctx, inside, "--version")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: r.Container}
	command.Dir = "/"
	command.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s --version: %w", inside, err)
	}
	return nil
}

// WaitForDriver tries the roots in turn until one answers, then writes the file that the plugin's container sources.
// It returns an error only if the context ends or the file cannot be written.
func WaitForDriver(ctx context.Context, roots []Root, outputFile string, log io.Writer) error {
	for attempt := 0; ; attempt++ {
		for _, root := range roots {
			err := root.check(ctx, log)
			if err == nil {
				return write(outputFile, root)
			}
			fmt.Fprintf(log, "driver root %s: %v\n", root.Host, err)
		}
		if attempt%hintEvery == 0 {
			fmt.Fprint(log, hint)
		}
		select {
		case <-ctx.Done():
			return errors.New("ended before a driver was found")
		case <-time.After(pause):
		}
	}
}

// write publishes the findings for a shell to source; the rename makes sure that no half file is read.
func write(path string, root Root) error {
	content := fmt.Sprintf("IS_HOST_DRIVER=%t\nNVIDIA_DRIVER_ROOT=%[2]s\nDRIVER_ROOT_CTR_PATH=%[3]s\n"+
		"NVIDIA_DEV_ROOT=%[2]s\nDEV_ROOT_CTR_PATH=%[3]s\n", root.IsHost(), root.Host, root.Container)
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
