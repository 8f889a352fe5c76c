package cli

import (
	"fmt"

	"filippo.io/age"
	"github.com/spf13/cobra"
)

func (p Program) newKeygen() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key for the encryption of the disk store",
		Long: "Write a new key to FILE, which must not exist, readable by its owner alone. serve takes it by\n" +
			"--encryption-key-file. Keep a copy elsewhere: without the key nothing can be read.",
		Example: "  contextd keygen /etc/contextd/store.key",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			identity, err := age.GenerateX25519Identity()
			if err != nil {
				return err
			}
			if err := writeSecret(args[0], fmt.Sprintf("# public key: %s\n%s\n", identity.Recipient(), identity)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", args[0], identity.Recipient())
			return err
		},
	}
}
