package installation

import (
	"encoding/json"
	"fmt"
	"os"
)

// writePorts writes the addresses of all listeners to a file for other programs. The file appears
// whole or not at all.
func writePorts(path string, ports map[string]string) error {
	text, err := json.MarshalIndent(ports, "", "  ")
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	return nil
}
