"""From what is known of configs to the choice that the runtime makes."""
