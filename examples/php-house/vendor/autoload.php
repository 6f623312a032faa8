<?php

// Stands for the file that `composer install` writes, so that the example needs no network.
spl_autoload_register(static function (string $class): void {
    foreach (['App\\Tests\\' => 'tests', 'App\\' => 'src'] as $prefix => $folder) {
        $file = dirname(__DIR__) . "/$folder/" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;
            return;
        }
    }
});
